import type { Remedy, Severity } from '../../model/health.ts';
import type { ReasonOf } from '../kit/finding.ts';
import type { logConditions } from './conditions.ts';
import type { RecoveryAction } from './states.ts';
import type { XidLine } from './xid-line.ts';

/** Source of an Xid; also the reason of its condition. */
export type XidClass = Exclude<ReasonOf<typeof logConditions.Xid>, 'Recovered'>;

/**
 * Event that ends the condition of an Xid. `quiet`: the Xid does not occur again for some time. `reset`: a reset of the GPU, or the
 * recovery action "none". `boot`: the next boot, or the recovery action "none"; a reset does not end it.
 */
export type XidLasts = 'quiet' | 'reset' | 'boot';

/** First step in NVIDIA's catalogue. `none-stated`: the catalogue names no step. */
export type CatalogueAction =
  | 'restart-app'
  | 'ignore'
  | 'contact-support'
  | 'reset'
  | 'follow-cause'
  | 'follow-text'
  | 'check-mechanicals'
  | 'nvlink-workflow'
  | 'update-software'
  | 'restart-machine'
  | 'restart-vm'
  | 'check-uvm'
  | 'none-stated';

/** Meaning of one Xid, or of several similar Xids, for this agent. */
export interface XidRow {
  readonly xids: readonly number[];
  readonly meaning: string;
  readonly class: XidClass;
  /** `info` does not affect the device, `degraded` marks it, `fatal` makes it unhealthy. */
  readonly severity: Severity;
  readonly remedy: Remedy;
  readonly lasts: XidLasts;
  /** True when all MIG instances share the failed part, so a line that names one instance concerns all. */
  readonly isWholeGpu?: true;
  readonly nvidia: CatalogueAction;
  /** Action in GPUd's table; absent when the table has no entry. */
  readonly gpud?: 'none' | 'check-app' | 'reboot' | 'warning' | 'fatal' | 'info' | 'hardware-inspection';
}

type Outcome = Pick<XidRow, 'severity' | 'lasts'>;
const INFO: Outcome = { severity: 'info', lasts: 'quiet' };
const PASSING: Outcome = { severity: 'degraded', lasts: 'quiet' };
const UNTIL_RESET: Outcome = { severity: 'degraded', lasts: 'reset' };
const UNTIL_BOOT: Outcome = { severity: 'degraded', lasts: 'boot' };
const FATAL_UNTIL_RESET: Outcome = { severity: 'fatal', lasts: 'reset' };
const FATAL_UNTIL_BOOT: Outcome = { severity: 'fatal', lasts: 'boot' };

/**
 * The whole catalogue. The severities are those of this agent: an error that ends with the program is `info` or passes, an error that
 * a reset repairs is `fatal` until the reset, and an error that the catalogue says to ignore is not `fatal`.
 *
 * Sources: numbers, names and first steps from NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors, data-centre GPUs from Ampere on),
 * meanings of older numbers from nverror.h of NVIDIA's open kernel modules; GPUd's actions from its catalogue
 * (leptonai/gpud, components/accelerator/nvidia/xid).
 */
export const XID_TABLE: readonly XidRow[] = [
  row([...range(1, 4), 6, 7], 'push buffer stream or address damaged (older drivers)', 'Driver', PASSING, 'inspect', 'contact-support'),
  row([5, 10, 15, 17], 'number without use', 'Driver', PASSING, 'inspect', 'contact-support'),
  row([8], 'FIFO idle timeout: the GPU stopped processing', 'Application', INFO, 'restart-workload', 'restart-app', { gpud: 'none' }),
  row(
    [9, 12],
    'driver error while programming the GPU or handling its exception (older drivers)',
    'Driver',
    PASSING,
    'inspect',
    'contact-support',
  ),
  row([11, 25], 'invalid push buffer stream', 'Application', PASSING, 'restart-workload', 'restart-app'),
  row([13], 'graphics engine exception', 'Application', INFO, 'restart-workload', 'restart-app', { gpud: 'check-app' }),
  row([14], 'error that a program injected for a test', 'Information', INFO, 'none', 'ignore'),
  row([16, 19], 'display engine error (older drivers)', 'Driver', PASSING, 'inspect', 'contact-support'),
  row([18], 'bus mastering timeout (older drivers)', 'Hardware', PASSING, 'inspect', 'contact-support'),
  row([20, 21, 22], 'video push buffer damaged (older drivers)', 'Application', PASSING, 'restart-workload', 'contact-support'),
  row([23], 'error logging was enabled (older drivers)', 'Information', INFO, 'none', 'contact-support'),
  row([24, 26], 'semaphore or frame buffer timeout (older drivers)', 'Driver', PASSING, 'inspect', 'contact-support'),
  row(
    [27, 28, 29, 34, 35, 36, 42],
    'video processor exception (older drivers)',
    'Application',
    PASSING,
    'restart-workload',
    'contact-support',
  ),
  row([30], 'semaphore access error (older drivers)', 'Driver', PASSING, 'inspect', 'contact-support'),
  row([31], 'GPU memory page fault', 'Application', INFO, 'restart-workload', 'restart-app', { gpud: 'check-app' }),
  row([32], 'push buffer DMA error, often caused by the PCIe connection', 'Driver', PASSING, 'inspect', 'restart-app', { gpud: 'reboot' }),
  row([33], 'security engine or micro-controller error (older drivers)', 'Driver', PASSING, 'inspect', 'contact-support'),
  row([37], 'firmware method that is not implemented', 'Information', INFO, 'none', 'ignore'),
  row([38], 'firmware watchdog timeout', 'Driver', PASSING, 'inspect', 'ignore', { gpud: 'reboot' }),
  row(
    [39, 40, 41, 70, 71, 72, 75, 76, 77, 85, ...range(126, 135)],
    'copy engine exception',
    'Application',
    PASSING,
    'restart-workload',
    'restart-app',
  ),
  row([43], 'channel stopped after a fault of its program', 'Application', INFO, 'restart-workload', 'ignore', { gpud: 'check-app' }),
  row([44], 'graphics engine fault during a context switch', 'Driver', PASSING, 'inspect', 'ignore', { gpud: 'reboot' }),
  row([45], 'channels removed after another error or the end of a program', 'Application', INFO, 'restart-workload', 'follow-cause', {
    gpud: 'none',
  }),
  row([46], 'GPU timeout', 'Driver', FATAL_UNTIL_RESET, 'reset', 'reset', { isWholeGpu: true }),
  row([47, 65, 73], 'video encoder error (older drivers)', 'Application', PASSING, 'restart-workload', 'contact-support'),
  row([48], 'uncorrectable (double-bit) memory error', 'Hardware', FATAL_UNTIL_RESET, 'reset', 'reset', { gpud: 'reboot' }),
  row([...range(49, 53), 55], 'power or thermal state event (older drivers)', 'Hardware', PASSING, 'check-power', 'contact-support'),
  row([54], 'auxiliary power is not connected', 'Hardware', FATAL_UNTIL_BOOT, 'check-power', 'check-mechanicals', { isWholeGpu: true }),
  row([56], 'display engine error (older drivers)', 'Hardware', PASSING, 'inspect', 'contact-support'),
  row([57, 58], 'memory interface training or memory error (older drivers)', 'Hardware', PASSING, 'inspect', 'contact-support'),
  row([59], 'power management micro-controller error (older drivers)', 'Driver', PASSING, 'inspect', 'contact-support'),
  row([60], 'SEC2 or video processor exception', 'Application', PASSING, 'restart-workload', 'restart-app'),
  row([61], 'power management micro-controller breakpoint', 'Driver', PASSING, 'inspect', 'contact-support'),
  row([62], 'power management micro-controller halted', 'Driver', FATAL_UNTIL_RESET, 'reset', 'reset', { isWholeGpu: true }),
  row([63], 'memory row remapped or page retired, effective after a reset', 'Hardware', UNTIL_RESET, 'reset', 'ignore', { gpud: 'reboot' }),
  row([64], 'memory row could not be remapped, or page not retired', 'Hardware', FATAL_UNTIL_BOOT, 'replace', 'reset', { gpud: 'reboot' }),
  row([66, 67], 'illegal register access or interrupt by the driver', 'Driver', PASSING, 'inspect', 'ignore'),
  row([68], 'video decoder exception', 'Application', INFO, 'restart-workload', 'restart-app', { gpud: 'reboot' }),
  row([69], 'graphics engine class error', 'Application', INFO, 'restart-workload', 'restart-app', { gpud: 'reboot' }),
  row([74], 'NVLink error', 'Link', FATAL_UNTIL_RESET, 'reset', 'nvlink-workflow', { gpud: 'reboot', isWholeGpu: true }),
  row([78], 'vGPU could not start', 'Driver', PASSING, 'inspect', 'update-software'),
  row([79], 'fallen off the bus', 'Hardware', FATAL_UNTIL_RESET, 'reboot', 'restart-machine', { gpud: 'reboot', isWholeGpu: true }),
  row([80], 'push buffer checksum wrong: data damaged before it reached the GPU', 'Driver', PASSING, 'inspect', 'restart-app'),
  row([81], 'VGA subsystem error (older drivers)', 'Driver', PASSING, 'inspect', 'contact-support'),
  row(
    [82, 83, 84, 86, 88, 89, ...range(96, 105), 139],
    'video, JPEG or optical flow engine error',
    'Application',
    PASSING,
    'restart-workload',
    'restart-app',
  ),
  row([87, 90, 91, 138], 'number that current drivers do not use', 'Driver', PASSING, 'inspect', 'contact-support'),
  row([92], 'high rate of corrected memory errors', 'Hardware', PASSING, 'inspect', 'ignore'),
  row([93], 'write limit of the infoROM reached', 'Hardware', UNTIL_BOOT, 'inspect', 'ignore'),
  row(
    [94],
    'uncorrectable memory error, contained: only its program is lost; reset pending',
    'Hardware',
    UNTIL_RESET,
    'restart-workload',
    'restart-app',
    { gpud: 'check-app' },
  ),
  row([95], 'uncorrectable memory error, not contained', 'Hardware', FATAL_UNTIL_RESET, 'reset', 'reset', {
    gpud: 'reboot',
    isWholeGpu: true,
  }),
  row([106, 107], 'test message of the management bus', 'Information', INFO, 'none', 'ignore'),
  row([108], 'NVLink address translation refused by the other side', 'Application', INFO, 'restart-workload', 'ignore'),
  row([109], 'context switch timeout', 'Driver', FATAL_UNTIL_RESET, 'reset', 'reset', { gpud: 'warning' }),
  row([110], 'security fault', 'Hardware', FATAL_UNTIL_RESET, 'reset', 'reset', { isWholeGpu: true }),
  row([...range(111, 118)], 'display error (older drivers)', 'Driver', PASSING, 'inspect', 'contact-support'),
  row([119], 'GPU system processor does not answer', 'Driver', FATAL_UNTIL_RESET, 'reset', 'reset', { gpud: 'reboot', isWholeGpu: true }),
  row([120], 'GPU system processor error', 'Driver', FATAL_UNTIL_RESET, 'reset', 'reset', { gpud: 'reboot', isWholeGpu: true }),
  row([121], 'corrected error on the link to the CPU (C2C)', 'Link', PASSING, 'reset', 'ignore', { gpud: 'fatal' }),
  row([122, 124], 'board flash could not be read or erased', 'Hardware', UNTIL_RESET, 'inspect', 'contact-support'),
  row([123], 'board flash could not be written', 'Hardware', FATAL_UNTIL_RESET, 'reboot', 'contact-support', {
    gpud: 'fatal',
    isWholeGpu: true,
  }),
  row([125], 'infoROM file system error', 'Hardware', UNTIL_RESET, 'inspect', 'contact-support'),
  row([136], 'NVLink training failed', 'Link', FATAL_UNTIL_RESET, 'reset', 'reset', { isWholeGpu: true }),
  row([137], 'NVLink access without privilege', 'Application', PASSING, 'restart-workload', 'ignore'),
  row([140], 'uncorrectable memory error from which the driver could not recover', 'Hardware', FATAL_UNTIL_RESET, 'reset', 'reset', {
    isWholeGpu: true,
  }),
  row([141], 'CUDA fast path error', 'Information', INFO, 'none', 'ignore'),
  row([142], 'video encoder 3 error', 'Driver', PASSING, 'inspect', 'contact-support'),
  row([143], 'GPU could not be initialised; replace it when a reset does not help', 'Hardware', FATAL_UNTIL_RESET, 'reset', 'reset', {
    gpud: 'hardware-inspection',
    isWholeGpu: true,
  }),
  row([144], 'NVLink error in unit SAW', 'Link', FATAL_UNTIL_RESET, 'reset', 'nvlink-workflow', { isWholeGpu: true }),
  row([145], 'NVLink error in unit RLW', 'Link', FATAL_UNTIL_RESET, 'reset', 'nvlink-workflow', { isWholeGpu: true }),
  row([146], 'NVLink error in unit TLW', 'Link', FATAL_UNTIL_RESET, 'reset', 'nvlink-workflow', { isWholeGpu: true }),
  row([147], 'NVLink error in unit TREX', 'Link', FATAL_UNTIL_RESET, 'reset', 'nvlink-workflow', { isWholeGpu: true }),
  row([148], 'NVLink error in unit NVLPW_CTRL', 'Link', FATAL_UNTIL_RESET, 'reset', 'nvlink-workflow', { isWholeGpu: true }),
  row([149], 'NVLink error in unit NETIR', 'Link', FATAL_UNTIL_RESET, 'reset', 'nvlink-workflow', { isWholeGpu: true }),
  row([150], 'NVLink error in unit MSE', 'Link', FATAL_UNTIL_RESET, 'reset', 'nvlink-workflow', { isWholeGpu: true }),
  row(
    [151],
    'key rotation failed (confidential computing); restart the virtual machine',
    'Driver',
    FATAL_UNTIL_BOOT,
    'reboot',
    'restart-vm',
    { isWholeGpu: true },
  ),
  row([152, 153], 'deep learning accelerator error', 'Information', INFO, 'none', 'ignore'),
  row([154], 'recovery action changed', 'Information', FATAL_UNTIL_RESET, 'inspect', 'follow-text', { gpud: 'info', isWholeGpu: true }),
  row([155], 'NVLink taken down by software', 'Link', FATAL_UNTIL_RESET, 'reset', 'reset', { isWholeGpu: true }),
  row([156], 'resource retired, effective after a reset', 'Hardware', FATAL_UNTIL_RESET, 'reset', 'reset'),
  row([157], 'resource could not be retired', 'Hardware', UNTIL_BOOT, 'replace', 'ignore'),
  row([158], 'fatal GPU timeout', 'Hardware', FATAL_UNTIL_RESET, 'reset', 'reset', { isWholeGpu: true }),
  row([159], 'error on the coherent link to the CPU', 'Hardware', PASSING, 'inspect', 'check-uvm'),
  row([160], 'memory channel retired, effective after a reset', 'Hardware', UNTIL_RESET, 'reset', 'ignore'),
  row([161], 'memory channel could not be retired', 'Hardware', UNTIL_BOOT, 'replace', 'ignore'),
  row([162], 'power smoothing works again', 'Information', INFO, 'none', 'none-stated'),
  row([163], 'power smoothing disengaged', 'Hardware', PASSING, 'check-cooling', 'none-stated'),
  row([164], 'power smoothing hardware near its end of life', 'Hardware', UNTIL_BOOT, 'replace', 'none-stated'),
  row([165], 'power smoothing hardware at its end of life', 'Hardware', UNTIL_BOOT, 'replace', 'none-stated'),
  row([166, 170], 'NVLink traffic not secured as confidential computing wants it', 'Link', UNTIL_RESET, 'inspect', 'none-stated'),
  row([167], 'fatal PCIe timeout', 'Hardware', FATAL_UNTIL_RESET, 'reboot', 'none-stated', { isWholeGpu: true }),
  row([168], 'less memory than the board has, after errors in a protected region', 'Hardware', UNTIL_RESET, 'inspect', 'none-stated'),
  row([169], 'security micro-controller halted', 'Driver', FATAL_UNTIL_RESET, 'reset', 'none-stated', { isWholeGpu: true }),
  row([171], 'uncorrectable DRAM error, in detail for 48', 'Hardware', FATAL_UNTIL_RESET, 'reset', 'none-stated'),
  row([172], 'uncorrectable SRAM error, in detail for 48', 'Hardware', FATAL_UNTIL_RESET, 'reset', 'none-stated'),
  row([173], 'fatal error on the link to the CPU (C2C)', 'Link', FATAL_UNTIL_RESET, 'reboot', 'none-stated', { isWholeGpu: true }),
  row([174], 'channel ended without a report', 'Driver', PASSING, 'restart-workload', 'none-stated'),
  row([175], 'memory subsystem event', 'Hardware', PASSING, 'inspect', 'none-stated'),
  row([176], 'corrected PCIe errors', 'Hardware', PASSING, 'inspect', 'none-stated'),
];

function row(
  xids: readonly number[],
  meaning: string,
  kind: XidClass,
  outcome: Outcome,
  remedy: Remedy,
  nvidia: CatalogueAction,
  more: Pick<XidRow, 'gpud' | 'isWholeGpu'> = {},
): XidRow {
  return { xids, meaning, class: kind, ...outcome, remedy, nvidia, ...more };
}

function range(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** Returns the row of one Xid; undefined for numbers that are not in the table. */
export function xidRow(xid: number): XidRow | undefined {
  return XID_TABLE.find((row) => row.xids.includes(xid));
}

/** Meaning of one log line for the device that it names. */
export interface XidJudgement {
  readonly class: XidClass;
  readonly meaning: string;
  readonly severity: Severity;
  readonly remedy: Remedy;
  readonly lasts: XidLasts;
  readonly isWholeGpu: boolean;
}

/** Judges one line by the table, and by the severity, reset or recovery action in the line itself. */
export function judgeXid(line: XidLine): XidJudgement {
  const row = xidRow(line.xid);
  if (row === undefined) return { class: 'UnknownXid', meaning: 'not in the table', ...PASSING, remedy: 'inspect', isWholeGpu: false };
  const { class: kind, meaning, severity, remedy, lasts, isWholeGpu } = row;
  const judged = { class: kind, meaning, severity, remedy, lasts, isWholeGpu: isWholeGpu === true };
  if (line.xid === 154) return { ...judged, class: 'RecoveryAction', ...recoveryRemedy(line.recoveryAction) };
  if (line.resetRequired === true) return { ...judged, remedy: 'reset' };
  if (line.xid >= 144 && line.xid <= 150 && line.nvlink?.isFatal !== true)
    return { ...judged, severity: 'degraded', remedy: 'inspect', lasts: 'quiet' };
  return judged;
}

/** NVLink error of the GPU itself: an event of its link (unit NETIR). */
export const LINK_SOURCE = 149;
/** NVLink error that tells a fault of the other end (unit RLW). */
export const LINK_VICTIM = 145;

/** Judges an NVLink error whose source is another GPU. `source`: its address. */
export function judgeVictim(judged: XidJudgement, source: string): XidJudgement {
  const meaning = `${judged.meaning.replace(/; its source .*/, '')}; its source is the GPU at ${source}, which reported Xid ${LINK_SOURCE}`;
  return { ...judged, meaning, severity: 'degraded', remedy: 'restart-workload', lasts: 'quiet' };
}

/** An unknown action has the remedy `inspect`. */
function recoveryRemedy(action: RecoveryAction | undefined): Pick<XidJudgement, 'meaning' | 'remedy'> {
  const asked = action !== undefined && 'need' in action ? action : undefined;
  return {
    meaning: `the driver asks for ${asked?.meaning ?? 'an action that is not known here'}`,
    remedy: asked?.need.remedy ?? 'inspect',
  };
}
