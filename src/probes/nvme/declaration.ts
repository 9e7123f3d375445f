import { logProblems } from '../../host/kernel-log/problems.ts';
import type { ProblemSpec } from '../../model/collection.ts';
import { hours, minutes, seconds } from '../../model/duration.ts';
import { booleanOption, type OptionSpecs, type OptionValues, pacedOption, stringOption } from '../../model/options.ts';
import { classProblem, fileProblems } from '../kit/device-files.ts';
import { type LogRow, logCondition, logGrowth } from '../kit/log-row.ts';
import { startFailed, startRows } from '../kit/pcie/bus-conditions.ts';
import { sensorProblems } from '../kit/temperature.ts';

export const options = {
  smart: booleanOption(
    false,
    'Read the SMART log of each drive by one read-only admin command on /dev/nvme<N>. It is the only option that opens a device node; it needs the nodes and the capability SYS_ADMIN',
  ),
  'smart-directory': stringOption(
    '',
    'Directory with files <serial number>.json, the output of nvme smart-log -o json, which another program writes at least every 30 minutes; empty means none',
  ),
  /** A read of the SMART log by an admin command ends the low-power state that the drive chose by itself. */
  'smart-interval': pacedOption('refresh.slow', minutes(5)),
  /** Each read of the temperatures makes the kernel send one admin command to the drive. */
  'temperature-interval': pacedOption('refresh.slow', seconds(60)),
  /** Names, firmware, sizes. */
  'facts-interval': pacedOption('refresh.facts', seconds(60)),
} as const satisfies OptionSpecs;

export type NvmeOptions = OptionValues<typeof options>;

export const problems = [
  classProblem(
    'The directory of NVMe controllers exists but cannot be listed, so the agent knows nothing about any drive.',
    '/sys/class/nvme',
  ),
  {
    code: 'identity-unknown',
    meaning: 'Neither the PCI address of a controller nor its subsystem name can be read, so the controller has no stable name.',
    remedy: 'Check that the agent sees the complete /sys of the host.',
  },
  {
    code: 'head-unknown',
    meaning: 'A controller shows a path to a namespace, but the namespace itself is in no subsystem that the agent sees.',
    remedy: 'Let the agent read /sys/class/nvme-subsystem of the host.',
  },
  {
    code: 'same-name-twice',
    meaning: 'Several namespaces have the same unique id, so the id names none of them. They are named by their controllers instead.',
    remedy: 'Update the firmware of the drive. Some drives are known to have ids that are not unique.',
  },
  {
    code: 'drive-hangs',
    meaning: 'A read of a file of the drive does not return, so the drive is not read.',
    remedy: 'Search the kernel log for nvme. A reset of the controller, or a reboot of the node, may be needed.',
  },
  ...sensorProblems,
  ...fileProblems('drive', 'Search the kernel log for nvme; a controller that does not answer may need a reset.'),
  {
    code: 'smart-refused',
    meaning: 'The agent may not send the command that reads the SMART log, so spare, wear and media errors are unknown.',
    remedy:
      'Give the agent the device nodes /dev/nvme<N> and the capability SYS_ADMIN (nvme.smart.enabled in the values of the chart), or let another program write the logs to smart-directory. Or turn the option smart off.',
  },
  {
    code: 'smart-failed',
    meaning: 'The SMART log could not be read, so spare, wear and media errors are unknown.',
    remedy: 'Run nvme smart-log on the drive. If it works there, report the message with the kernel and the drive.',
  },
  {
    code: 'smart-file',
    meaning: 'The file with the SMART log of a drive is absent, too old, or holds no such log.',
    remedy: 'Check the program that writes the files: one for each serial number, by nvme smart-log -o json.',
  },
  ...logProblems,
] as const satisfies readonly ProblemSpec[];

export type ProblemCode = (typeof problems)[number]['code'];

const PCI = 'Linux drivers/nvme/host/pci.c';
const BLOCK = 'Linux block/blk-core.c, blk_print_req_error';

/** Conditions that only the kernel log shows. */
export const logConditions = {
  StartFailed: startFailed,
  ControllerFailed: logCondition({
    type: 'ControllerFailed',
    severity: 'fatal',
    meaning: 'The driver could not reset the controller and gave it up, so its namespaces fail all requests.',
    remedy: 'power-cycle',
    source: `kernel log: ${PCI} "Disabling device after reset failure", before Linux 6.4 "Removing after probe failure status"; ends with the queues of a reset that worked`,
  }),
  CommandTimeouts: logGrowth({
    type: 'CommandTimeouts',
    severity: 'degraded',
    meaning: 'The drive did not answer commands within the time of the driver, which is 30 seconds by default.',
    remedy: 'inspect',
    source: `kernel log: ${PCI}, nvme_timeout`,
    growth: 0,
    windowMs: hours(1),
  }),
  ControllerResets: logGrowth({
    type: 'ControllerResets',
    severity: 'degraded',
    meaning: 'The driver reset the controller, because it stopped or reported an error. Requests waited for that time.',
    remedy: 'inspect',
    source: `kernel log: ${PCI}, nvme_warn_reset and nvme_error_detected; core.c, nvme_handle_aer_persistent_error`,
    growth: 0,
    windowMs: hours(1),
  }),
  RequestErrors: logGrowth({
    type: 'RequestErrors',
    severity: 'degraded',
    meaning: 'Requests to a namespace failed, so programs got an error, or data may be lost.',
    remedy: 'inspect',
    source: `kernel log: ${BLOCK}`,
    growth: 0,
    windowMs: hours(1),
  }),
};

const { ControllerFailed, CommandTimeouts, ControllerResets, RequestErrors } = logConditions;

const drivers = ['nvme'];
const fault = (type: string, severity: 'fatal' | 'degraded' | 'info' = 'degraded') => ({ type, severity, remedy: 'inspect' }) as const;

/** `I/O 5 QID 2 timeout, …` before Linux 6.3, later with tag, opcode and its words. */
const timedOut = (action: string): RegExp =>
  new RegExp(`^I/O (?:tag )?\\d+ (?:\\([0-9a-f]{4}\\) )?(?:opcode 0x[0-9a-f]+ )?(?:\\(.{1,40}?\\) )?QID (?<queue>\\d+) timeout, ${action}`);

const timeout = (name: string, action: string, means: string): LogRow => ({
  name,
  drivers,
  text: timedOut(action),
  means: `a command of queue {queue} timed out, ${means}`,
  source: `${PCI}, nvme_timeout`,
  repeats: CommandTimeouts,
  fault: fault('CommandTimeout'),
});

/** The block layer prints about a disk without its device. */
const failed = (name: string, begin: string, means: string, more: Partial<LogRow> = { repeats: RequestErrors }): LogRow => ({
  name,
  drivers: [],
  text: new RegExp(`^${begin} error, dev nvme(?<disk>\\d+(?:c\\d+)?n\\d+), sector `),
  withoutDevice: { class: 'block', name: 'nvme{disk}' },
  means: `${means} to nvme{disk}`,
  source: BLOCK,
  kinds: ['namespace'],
  fault: fault('RequestError'),
  ...more,
});

/** Lines of the driver, which prints with the device of the controller (`nvme nvme0: `), and of the block layer about its disks. */
export const logRows: readonly LogRow[] = [
  ...startRows(drivers),
  timeout('timeout-abort', 'abort', 'and the driver aborts it'),
  timeout('timeout-reset', 'reset controller', 'and the driver resets the controller'),
  timeout('timeout-disable', 'disable controller', 'and the driver disables the controller'),
  {
    name: 'interrupt-lost',
    drivers,
    text: timedOut('completion polled'),
    means: 'a command of queue {queue} was done, and its interrupt did not come',
    source: `${PCI}, nvme_timeout`,
    fault: fault('InterruptLost', 'info'),
  },
  {
    name: 'controller-down',
    drivers,
    text: /^controller is down; will reset: CSTS=(?<status>0x[0-9a-f]+)/,
    means: 'the controller is down (status {status}), and the driver resets it',
    source: `${PCI}, nvme_warn_reset`,
    words: { status: { '0xffffffff': 'all ones: it does not answer on the bus' } },
    repeats: ControllerResets,
    fault: fault('ControllerReset'),
  },
  {
    name: 'not-ready',
    drivers,
    text: /^Device not ready; aborting (?<what>initialisation|reset)/,
    means: 'the controller did not become ready after a reset',
    source: 'Linux drivers/nvme/host/core.c, nvme_wait_ready',
    repeats: ControllerResets,
    fault: fault('ControllerReset'),
  },
  {
    name: 'bus-error',
    drivers,
    text: /^(?:frozen state error detected, reset controller|resetting controller due to )/,
    means: 'the controller or its link reported an error, and the driver resets it',
    source: `${PCI}, nvme_error_detected; core.c, nvme_handle_aer_persistent_error`,
    repeats: ControllerResets,
    fault: fault('ControllerReset'),
  },
  {
    name: 'firmware-activation-timeout',
    drivers,
    text: /^Fw activation timeout, reset controller/,
    means: 'the new firmware did not start in time, and the driver resets the controller',
    source: 'Linux drivers/nvme/host/core.c, nvme_fw_act_work',
    repeats: ControllerResets,
    fault: fault('ControllerReset'),
  },
  {
    name: 'not-identified',
    drivers,
    text: /^(?:Identify Controller|Reading (?:CAP|VS|CRTO)) failed \(|^Could not set queue count \(/,
    means: 'the controller refused a command that its start needs',
    source: 'Linux drivers/nvme/host/core.c, nvme_init_identify, nvme_enable_ctrl and nvme_set_queue_count',
    fault: fault('ControllerRefused'),
  },
  {
    name: 'wrong-completion',
    drivers,
    text: /^invalid id \d+ completed on queue (?<queue>\d+)/,
    means: 'the controller completed a command in queue {queue} that it does not have',
    source: `${PCI}, nvme_handle_cqe`,
    fault: fault('WrongCompletion'),
  },
  {
    name: 'namespace-refused',
    drivers,
    text: /^(?:ignoring nsid (?<first>\d+) because of duplicate IDs|duplicate IDs in subsystem for nsid (?<second>\d+)|Duplicate unshared namespace (?<third>\d+)|IDs don't match for shared namespace (?<fourth>\d+))/,
    means: 'the driver makes no disk of namespace {first}{second}{third}{fourth}, whose ids another namespace has',
    source: 'Linux drivers/nvme/host/core.c, nvme_init_ns_head',
    fault: fault('NamespaceRefused'),
  },
  {
    name: 'queues-lost',
    drivers,
    text: /^IO queues (?:lost|not created)/,
    means: 'the controller has no queue for requests, so its namespaces are gone',
    source: `${PCI}, nvme_reset_work and nvme_probe`,
    raises: { condition: ControllerFailed },
    fault: { type: 'ControllerFailed', severity: 'fatal', remedy: 'power-cycle' },
  },
  {
    name: 'gave-up',
    drivers,
    text: /^(?:Disabling device after reset failure|Removing after (?:probe|reset) failure status): (?<error>-?\d+)|^failure state error detected, request disconnect/,
    means: 'the driver gave the controller up after a reset that failed',
    source: PCI,
    words: { error: { '-19': 'no device', '-5': 'input or output error' } },
    raises: { condition: ControllerFailed },
    fault: { type: 'ControllerFailed', severity: 'fatal', remedy: 'power-cycle' },
  },
  {
    name: 'queues-made',
    drivers,
    text: /^\d+\/\d+\/\d+ default\/read\/poll queues/,
    means: 'the driver started the controller',
    source: `${PCI}, nvme_setup_io_queues`,
    ends: [ControllerFailed],
  },
  {
    name: 'no-path',
    drivers: ['block'],
    text: /^no (?:available|usable) path - (?<action>failing|requeuing) I\/O/,
    means: 'no path leads to the namespace: {action} its requests',
    source: 'Linux drivers/nvme/host/multipath.c',
    kinds: ['namespace'],
    fault: fault('NoPath'),
  },
  failed('request-error', 'I/O', 'a request failed'),
  failed('medium-error', 'critical medium', 'the drive could not read or write its medium in a request'),
  // Programs send requests that a drive does not know, so these say little about the drive.
  failed('target-error', 'critical target', 'the drive refused a request', { fault: fault('RequestError', 'info') }),
  failed('protection-error', 'protection', 'the check of data (protection information) failed in a request'),
  failed('old-request-error', 'blk_update_request: (?:I/O|critical (?:medium|target|nexus)|protection|timeout)', 'a request failed'),
  // The block layer prints about the same request, with its direction, and is counted.
  {
    name: 'command-error',
    drivers: [],
    text: /^nvme(?<disk>\d+(?:c\d+)?n\d+): [\w /-]{1,40}\(0x[0-9a-f]+\) @ LBA \d+, \d+ blocks, (?<status>.{1,60}?) \(sct 0x[0-9a-f] \/ sc 0x[0-9a-f]{1,2}\)/,
    withoutDevice: { class: 'block', name: 'nvme{disk}', fixed: ' @ LBA ' },
    means: 'the drive failed a command to nvme{disk}: {status}',
    source: 'Linux drivers/nvme/host/core.c, nvme_log_error',
    kinds: ['namespace'],
    fault: fault('CommandError', 'info'),
  },
  {
    name: 'bus-lost',
    drivers,
    text: /^(?:can't change power state from \w+ to D0 \(config space inaccessible\)|Unable to change power state from \w+ to D0, device inaccessible)/,
    means: 'the drive does not answer on the bus',
    source: 'Linux drivers/pci/pci.c, pci_power_up',
    fault: { type: 'BusLost', severity: 'fatal', remedy: 'power-cycle' },
  },
  {
    name: 'buffer-error',
    drivers: [],
    text: /^Buffer I\/O error on dev nvme(?<part>\d+n\d+(?:p\d+)?), logical block /,
    withoutDevice: { class: 'block', name: 'nvme{part}' },
    means: 'a page of nvme{part} could not be read or written, which the line of the request tells, too',
    source: 'Linux fs/buffer.c, buffer_io_error',
  },
  {
    name: 'file-system-stopped',
    drivers: [],
    text: /^(?:EXT4-fs|XFS) \(nvme(?<part>\d+n\d+(?:p\d+)?)\): (?:Remounting filesystem read-only|Filesystem has been shut down due to )/,
    withoutDevice: { class: 'block', name: 'nvme{part}', fixed: 'ilesystem ' },
    means: 'the file system on nvme{part} takes no more writes',
    source: 'Linux fs/ext4/super.c, ext4_handle_error; fs/xfs/xfs_fsops.c, xfs_do_force_shutdown',
    kinds: ['namespace'],
    fault: fault('FileSystemReadOnly', 'fatal'),
  },
  {
    name: 'journal-aborted',
    drivers: [],
    text: /^Aborting journal on device nvme(?<part>\d+n\d+(?:p\d+)?)-\d+\./,
    withoutDevice: { class: 'block', name: 'nvme{part}' },
    means: 'a write to the journal of the file system on nvme{part} failed: it becomes read-only',
    source: 'Linux fs/jbd2/journal.c, __jbd2_journal_abort_hard',
    kinds: ['namespace'],
    fault: fault('FileSystemReadOnly', 'fatal'),
  },
];
