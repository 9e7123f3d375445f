import { hours } from '../../model/duration.ts';
import type { Remedy, Severity } from '../../model/health.ts';
import { type LogRow, logCondition, logGrowth } from '../kit/log-row.ts';
import { startFailed, startRows } from '../kit/pcie/bus-conditions.ts';

const AMD = 'Linux drivers/gpu/drm/amd';

/** Conditions that only the kernel log shows. */
export const logConditions = {
  StartFailed: startFailed,
  HardwareFatal: logCondition({
    type: 'HardwareFatal',
    severity: 'fatal',
    meaning: 'The card reported a hardware error that stops it. The driver resets it, and all cards that it is linked with.',
    remedy: 'reboot',
    source: `kernel log: ${AMD}/amdgpu/amdgpu_ras.c "uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected"; ends with a reset that succeeded, or the start of the driver`,
  }),
  ResetFailed: logCondition({
    type: 'ResetFailed',
    severity: 'fatal',
    meaning: 'The driver could not reset the card, so work on it fails.',
    remedy: 'reboot',
    source: `kernel log: ${AMD}/amdgpu/amdgpu_device.c "GPU reset(…) failed", "GPU reset end with ret"; ends with a reset that succeeded, or the start of the driver`,
  }),
  PowerFirmwareSilent: logCondition({
    type: 'PowerFirmwareSilent',
    severity: 'degraded',
    meaning: 'The firmware for power and clocks (SMU) does not answer the driver. Clocks, sensors and resets may not work.',
    remedy: 'reset',
    source: `kernel log: ${AMD}/pm/swsmu/smu_cmn.c "I'm not done with your previous command", "No response"; ends when the driver starts the firmware again`,
  }),
  TooManyBadPages: logCondition({
    type: 'TooManyBadPages',
    severity: 'fatal',
    meaning: 'The card retired as many pages of memory as it may, so the driver refuses it at the next start.',
    remedy: 'replace',
    source: `kernel log: ${AMD}/amdgpu/amdgpu_ras_eeprom.c "exceed threshold", "reaches threshold"; ends when a larger threshold (amdgpu.bad_page_threshold) is set`,
  }),
  ThermalShutdown: logGrowth({
    type: 'ThermalShutdown',
    severity: 'fatal',
    meaning: 'The card was so hot that it or the machine had to stop.',
    remedy: 'check-cooling',
    source: `kernel log: ${AMD}/pm/swsmu/smu11, smu13, smu14 and amdgpu_smu.c "over temperature range", "Critical Temperature Fault"`,
    growth: 0,
    windowMs: hours(1),
  }),
  RingTimeouts: {
    ...logGrowth({
      type: 'RingTimeouts',
      severity: 'degraded',
      meaning:
        'Work on the card hangs again and again. Off by default: a program usually causes it, and no source gives a number that is a fault of the card.',
      remedy: 'inspect',
      source: `kernel log: ${AMD}/amdgpu/amdgpu_job.c "ring … timeout"; the limit is our choice`,
      growth: 10,
      windowMs: hours(24),
    }),
    isOffByDefault: true as const,
  },
};

const { HardwareFatal, ResetFailed, PowerFirmwareSilent, TooManyBadPages, ThermalShutdown, RingTimeouts } = logConditions;
const drivers = ['amdgpu'];

/**
 * What the driver prints before the text: its name on Linux 5.8 to 6.16, DRM its own with or without the function, and error handling the
 * number of its event: `amdgpu: [drm:amdgpu_job_timedout [amdgpu]] *ERROR* `, `amdgpu: {1}`.
 */
const BEGIN = String.raw`^(?:amdgpu: )?(?:\[drm(?::\w+(?:\.\w+)*(?: \[amdgpu\])?)?\] ?)?(?:\*ERROR\* )?(?:\{\d+\} ?)?`;
const said = (text: string, flags?: string): RegExp => new RegExp(BEGIN + text, flags);

const fault = (type: string, severity: Severity, remedy: Remedy) => ({ type, severity, remedy });
/** Work was lost. The usual cause is the program, or what another row names. */
const lostWork = (type: string) => fault(type, 'degraded', 'restart-workload');

/** Name of the row of a fatal hardware error. Only the card that had it has the line. */
export const FATAL_ROW = 'fatal-error';

/** Lines of the driver, which prints with the device since Linux 5.8. Before Linux 6.11 the line about a ring has none, and that of the reset follows it. */
export const logRows: readonly LogRow[] = [
  ...startRows(drivers),
  {
    name: 'init-failed',
    drivers,
    text: said('Fatal error during GPU init'),
    means: 'the driver could not set up the card',
    source: `${AMD}/amdgpu/amdgpu_kms.c, amdgpu_driver_load_kms`,
    raises: { condition: startFailed },
  },
  {
    name: 'loaded',
    drivers,
    text: /^\[drm\] Initialized amdgpu .{0,60}for (?<device>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) on minor \d+$/,
    withoutDevice: { class: 'pci', name: '{device}' },
    means: 'the driver was loaded and reported no such fault since',
    source: 'Linux drivers/gpu/drm/drm_drv.c, before Linux 6.11',
    ends: [startFailed, HardwareFatal, ResetFailed, PowerFirmwareSilent],
  },
  {
    name: 'initialized',
    drivers,
    text: said('Initialized amdgpu \\d'),
    means: 'the driver was loaded and reported no such fault since',
    source: 'Linux drivers/gpu/drm/drm_drv.c',
    ends: [startFailed, HardwareFatal, ResetFailed, PowerFirmwareSilent],
  },
  {
    name: 'ring-recovered',
    drivers,
    text: said('ring (?<ring>\\S+) timeout, but soft recovered'),
    means: 'work on ring {ring} hung, and the driver ended it without a reset',
    source: `${AMD}/amdgpu/amdgpu_job.c`,
    repeats: RingTimeouts,
    fault: lostWork('RingTimeout'),
  },
  {
    name: 'ring-timeout',
    drivers,
    text: said('ring (?<ring>\\S+) timeout'),
    means: 'work on ring {ring} did not end in time',
    source: `${AMD}/amdgpu/amdgpu_job.c`,
    repeats: RingTimeouts,
    fault: lostWork('RingTimeout'),
  },
  {
    name: 'process',
    drivers,
    text: said(' ?(?:Process information: process|Process) (?<process>.{0,15}) pid (?<pid>\\d+) thread .{0,15} pid \\d+$'),
    means: 'the work that hung or failed was that of {process} (PID {pid})',
    source: `${AMD}/amdgpu/amdgpu_vm.c, amdgpu_vm_print_task_info`,
    fault: lostWork('WorkOfProcess'),
  },
  {
    name: 'page-fault',
    drivers,
    text: said('\\[\\w+\\] (?:no-retry |retry )?page fault \\((?:.*, for process (?<process>.{0,15}) pid (?<pid>\\d+) thread )?', 'i'),
    means: 'a program used memory of the card that it does not have',
    source: `${AMD}/amdgpu/gmc_v9_0.c and the other versions`,
    fault: lostWork('PageFault'),
  },
  {
    name: 'ring-reset',
    drivers,
    text: said('Ring (?<ring>\\S+) reset succeeded'),
    means: 'the driver reset ring {ring}',
    source: `${AMD}/amdgpu/amdgpu_job.c`,
  },
  {
    name: 'ring-reset-failed',
    drivers,
    text: said('Ring (?<ring>\\S+) reset failed'),
    means: 'the driver could not reset ring {ring} alone: a reset of the card follows',
    source: `${AMD}/amdgpu/amdgpu_job.c`,
  },
  {
    name: 'recovered',
    drivers,
    // Linux 6.15 prints it after a reset that failed, too. So it ends nothing.
    text: said('device wedged, but '),
    means: 'the driver ended a reset of a ring or of the card',
    source: 'Linux drivers/gpu/drm/drm_drv.c, drm_dev_wedged_event',
  },
  {
    name: 'reset-begin',
    drivers,
    text: said('GPU reset begin!'),
    means: 'the driver resets the card, which ends all work on it',
    source: `${AMD}/amdgpu/amdgpu_device.c`,
    fault: lostWork('GpuReset'),
  },
  {
    name: 'reset-succeeded',
    drivers,
    text: said('GPU reset\\(\\d+\\) succeeded!'),
    means: 'the driver reset the card',
    source: `${AMD}/amdgpu/amdgpu_device.c`,
    ends: [HardwareFatal, ResetFailed],
  },
  {
    name: 'reset-failed',
    drivers,
    text: said(
      '(?:GPU reset\\(\\d+\\) failed|GPU reset end with ret = -?\\d+|GPU Recovery Failed|ASIC reset failed with error|device wedged, needs recovery)',
    ),
    means: 'the driver could not reset the card',
    source: `${AMD}/amdgpu/amdgpu_device.c, Linux drivers/gpu/drm/drm_drv.c`,
    raises: { condition: ResetFailed },
    fault: fault('ResetFailed', 'fatal', 'reboot'),
  },
  {
    name: FATAL_ROW,
    drivers,
    text: said('uncorrectable hardware error ?\\((?<event>ERREVENT_\\w+)\\) detected', 'i'),
    means: 'the card reported a fatal hardware error ({event})',
    source: `${AMD}/amdgpu/amdgpu_ras.c, amdgpu_ras_global_ras_isr`,
    words: { event: { ERREVENT_ATHUB_INTERRUPT: 'ATHUB: this card is the source' } },
    raises: { condition: HardwareFatal },
    fault: fault('HardwareFatal', 'fatal', 'reboot'),
  },
  {
    name: 'uncorrectable-errors',
    drivers,
    text: said(
      '(?:socket: \\d+,? )?(?:die: \\d+,? )?(?<count>[1-9]\\d*) (?<what>new uncorrectable|uncorrectable) hardware errors detected in (?:total in )?(?<block>\\w+) block',
      'i',
    ),
    means: '{count} uncorrectable errors in block {block}',
    source: `${AMD}/amdgpu/amdgpu_ras.c, amdgpu_ras_error_generate_report`,
    fault: fault('UncorrectableErrors', 'degraded', 'inspect'),
  },
  {
    name: 'poison-consumed',
    drivers,
    text: said('(?:.{0,40}RAS poison (?:is consumed|consumption)|poison is consumed by|RAS poison consumption)', 'i'),
    means: 'a program read damaged data',
    source: `${AMD}/amdgpu/amdgpu_ras.c, amdkfd/kfd_int_process_v9.c`,
    fault: lostWork('PoisonConsumed'),
  },
  {
    name: 'poison-created',
    drivers,
    text: said('Poison is created', 'i'),
    means: 'the card marked damaged data that nothing read so far',
    source: `${AMD}/amdgpu/amdgpu_ras.c, amdgpu_ras_interrupt_poison_creation_handler`,
    fault: fault('PoisonCreated', 'info', 'inspect'),
  },
  {
    name: 'bad-pages',
    drivers,
    text: said(
      '(?:RAS records:\\d+ exceed threshold|Saved bad pages \\d+ reaches threshold|GPU will not be initialized\\. Replace this GPU)',
    ),
    means: 'the card has more bad pages than the threshold of the driver',
    source: `${AMD}/amdgpu/amdgpu_ras_eeprom.c`,
    raises: { condition: TooManyBadPages },
  },
  {
    name: 'threshold-raised',
    drivers,
    text: said('records:\\d+ threshold:\\d+, resetting RAS table header signature'),
    means: 'the threshold of bad pages was raised',
    source: `${AMD}/amdgpu/amdgpu_ras_eeprom.c`,
    ends: [TooManyBadPages],
  },
  {
    name: 'thermal-shutdown',
    drivers,
    text: said('ERROR: (?:GPU over temperature range|GPU HW Critical Temperature Fault|System is going to shutdown due to GPU)'),
    means: 'the card is above the temperature at which it stops',
    source: `${AMD}/pm/swsmu/amdgpu_smu.c, smu11/smu_v11_0.c, smu13/smu_v13_0.c`,
    repeats: ThermalShutdown,
    fault: fault('ThermalShutdown', 'fatal', 'check-cooling'),
  },
  {
    name: 'thermal-throttling',
    drivers,
    text: said('WARN: GPU (?:is )?thermal throttling', 'i'),
    means: 'the card lowers its clocks because of its temperature',
    source: `${AMD}/pm/swsmu/smu11/arcturus_ppt.c, smu13/aldebaran_ppt.c`,
    fault: fault('ThermalThrottling', 'info', 'check-cooling'),
  },
  {
    name: 'smu-silent',
    drivers,
    text: said("SMU: (?:I'm not done with your previous command|No response)"),
    means: 'the firmware for power and clocks (SMU) did not answer a command of the driver',
    source: `${AMD}/pm/swsmu/smu_cmn.c`,
    raises: { condition: PowerFirmwareSilent },
    fault: fault('PowerFirmwareSilent', 'degraded', 'reset'),
  },
  {
    name: 'smu-started',
    drivers,
    text: said('SMU is (?:initialized|resumed) successfully'),
    means: 'the driver started the firmware for power and clocks',
    source: `${AMD}/pm/swsmu/amdgpu_smu.c`,
    ends: [PowerFirmwareSilent],
  },
  {
    name: 'scheduler-silent',
    drivers,
    text: said('MES (?:\\d+ )?failed to respond to msg=(?<command>[\\w ()]+)|MES might be in unrecoverable state', 'i'),
    means: 'the firmware that schedules work (MES) did not answer a command of the driver {command}',
    source: `${AMD}/amdgpu/mes_v11_0.c, mes_v12_0.c`,
    fault: lostWork('SchedulerSilent'),
  },
  {
    name: 'queues-stuck',
    drivers,
    text: said('(?:kfd: )?(?:qcm fence wait loop timeout expired|The cp might be in an unrecoverable state)'),
    means: 'the scheduler of the card could not take a queue from the work: a reset of the card follows',
    source: `${AMD}/amdkfd/kfd_device_queue_manager.c, since Linux 6.11 with the device`,
    fault: lostWork('SchedulerSilent'),
  },
];
