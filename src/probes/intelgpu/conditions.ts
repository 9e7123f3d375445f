import { hours, minutes } from '../../model/duration.ts';
import type { ConditionSpec, Finding, Severity } from '../../model/health.ts';
import { raise } from '../kit/finding.ts';
import { type LogRow, logCondition, logGrowth } from '../kit/log-row.ts';
import { startFailed, startRows } from '../kit/pcie/bus-conditions.ts';
import { pcieErrorFindings, pcieFindings } from '../kit/pcie/health.ts';
import { overTemperature, overTemperatureCondition } from '../kit/temperature.ts';
import type { AwakeSample, CardReadResult } from './card.ts';
import type { ThrottleSample } from './gts.ts';
import { metrics } from './metrics.ts';

const DRIVER = 'Linux drivers/gpu/drm';

export const conditions = {
  Survivability: {
    type: 'Survivability',
    class: 'latched',
    severity: 'fatal',
    reasons: ['SurvivabilityMode', 'NormalMode'],
    meaning: 'The firmware of the card failed. The card accepts only new firmware, and no work.',
    remedy: 'replace',
    source: `/sys/bus/pci/devices/<address>/survivability_mode exists; ${DRIVER}/xe/xe_survivability_mode.c. New firmware may repair the card`,
  },
  Wedged: logCondition({
    type: 'Wedged',
    severity: 'fatal',
    meaning: 'The driver gave up the card. All work on it fails until an operator recovers it.',
    remedy: 'reload-driver',
    source: `kernel log: ${DRIVER}/xe/xe_device.c "declared device … as wedged", drm_drv.c "device wedged, needs recovery"; ends when the driver starts again`,
  }),
  HardwareFatal: logCondition({
    type: 'HardwareFatal',
    severity: 'fatal',
    meaning: 'The card reported a fatal hardware error.',
    remedy: 'reboot',
    source: `kernel log: ${DRIVER}/xe/xe_hw_error.c "[Hardware Error]: Tile<n> reported FATAL error"; ends when the driver starts again`,
  }),
  HardwareNonfatal: logGrowth({
    type: 'HardwareNonfatal',
    severity: 'degraded',
    meaning: 'The card reported a hardware error that could not be corrected. Work on it may have failed.',
    remedy: 'inspect',
    source: `kernel log: ${DRIVER}/xe/xe_hw_error.c "[Hardware Error]: Tile<n> reported NONFATAL error"`,
    growth: 0,
    windowMs: hours(1),
  }),
  FirmwareSilent: logGrowth({
    type: 'FirmwareSilent',
    severity: 'degraded',
    meaning: 'The firmware that schedules work (GuC) does not answer the driver, again and again. Work hangs or fails.',
    remedy: 'reset',
    source: `kernel log: ${DRIVER}/i915/gt/uc/intel_guc_ct.c, intel_guc_submission.c and intel_guc.c; xe/xe_guc_ct.c, xe_guc.c and xe_tlb_inval.c; the limit is our choice`,
    growth: 2,
    windowMs: minutes(10),
  }),
  EngineResets: {
    ...logGrowth({
      type: 'EngineResets',
      severity: 'degraded',
      meaning:
        'Jobs on the card hang again and again. Off by default: a program usually causes it, and no source gives a number that is a fault of the card.',
      remedy: 'inspect',
      source: `kernel log: ${DRIVER}/xe/xe_guc_submit.c "Timedout job", "Engine reset"; i915/gt/intel_reset.c "Resetting <engine>"; the limit is our choice`,
      growth: 10,
      windowMs: hours(24),
    }),
    isOffByDefault: true,
  },
  StartFailed: startFailed,
  OverTemperature: {
    ...overTemperatureCondition,
    source: 'Linux Documentation/ABI/testing/sysfs-driver-intel-xe-hwmon: temp*_crit, temp*_emergency',
  },
  Throttled: {
    type: 'Throttled',
    class: 'self-clearing',
    severity: 'info',
    reasons: ['Throttled', 'NotThrottled', 'Unreadable'],
    meaning: 'The card runs slower than asked. Heat and faults of the power supply are degraded, power limits are for the record.',
    remedy: 'check-cooling',
    source: `throttle/reasons, throttle/reason_*, throttle_reason_*; ${DRIVER}/xe/xe_gt_throttle.c`,
    forMs: minutes(1),
    recoveryMs: minutes(1),
  },
  LinkDowngraded: {
    type: 'LinkDowngraded',
    class: 'latched',
    severity: 'info',
    reasons: ['Downgraded', 'AsTrained', 'Unreadable'],
    meaning: 'The card lowered the speed of its PCIe link to generation 4 when the machine started.',
    remedy: 'reseat',
    source: '/sys/bus/pci/devices/<address>/auto_link_downgrade_status',
  },
} as const satisfies Readonly<Record<string, ConditionSpec>>;

/** All findings of one sample of a card. Pure. */
export function findingsOf(sample: CardReadResult): Finding[] {
  switch (sample.state) {
    case 'hung':
      return [];
    case 'asleep':
      return sample.isInSurvivability === undefined ? [] : [survivability(sample.isInSurvivability)];
    case 'gone':
      return pcieErrorFindings({ aer: { errors: [], totals: {} }, answers: false });
    case 'awake':
      return awakeFindings(sample);
  }
}

function awakeFindings({ isInSurvivability, temperatures, throttle, isDowngraded, pcie }: AwakeSample): Finding[] {
  return [
    ...(isInSurvivability === undefined ? [] : [survivability(isInSurvivability)]),
    ...temperatures.map(overTemperature),
    ...(throttle === undefined ? [] : throttleFindings(throttle)),
    ...(isDowngraded === undefined ? [] : [downgraded(isDowngraded)]),
    ...(pcie === undefined ? [] : pcieFindings(pcie)),
  ];
}

function survivability(isIn: boolean): Finding {
  const message = isIn ? 'the card is in survivability mode' : 'the card is not in survivability mode';
  return raise(conditions.Survivability, isIn ? 'SurvivabilityMode' : 'NormalMode', { status: isIn, message });
}

/** Heat and faults of the power supply need a person. Limits of power are how the card works. */
const severityOf = (reason: string): Severity => (/thermal|prochot|^vr_/.test(reason) ? 'degraded' : 'info');

function throttleFindings({ reasons, unknown }: ThrottleSample): Finding[] {
  const { Throttled } = conditions;
  const held = [...reasons].flatMap(([reason, gts]): Finding[] => {
    if (gts.length === 0) return [];
    const message = `${reason} on ${gts.join(', ')}`;
    return [raise(Throttled, 'Throttled', { instance: reason, status: true, severity: severityOf(reason), message })];
  });
  if (unknown.length === 0) return [...held, raise(Throttled, 'NotThrottled', { status: false, message: 'no other reason holds' })];
  const message = `the reasons of ${unknown.join(', ')} cannot be read`;
  const others = [...reasons].filter(([, gts]) => gts.length === 0);
  return [...held, ...others.map(([instance]) => raise(Throttled, 'Unreadable', { instance, status: 'unknown', message }))];
}

function downgraded(status: boolean | 'unknown'): Finding {
  const { LinkDowngraded } = conditions;
  if (status === 'unknown') return raise(LinkDowngraded, 'Unreadable', { status, message: 'the state of the link cannot be read' });
  const message = status ? 'the card trained its link at a lower speed' : 'the card trained its link as it can';
  return raise(LinkDowngraded, status ? 'Downgraded' : 'AsTrained', { status, message });
}

const { Wedged, HardwareFatal, HardwareNonfatal, FirmwareSilent, EngineResets } = conditions;
const drivers = ['i915', 'xe'];
/** What both drivers print before the text: `[drm] *ERROR* Tile0: GT0: `. */
const drm = (text: string): RegExp => new RegExp(`^(?:\\[drm\\] )?(?:\\*ERROR\\* )?(?:Tile\\d+: )?(?:GT\\d+: )?${text}`);
/** The driver ended work on the card. The usual cause is the program. */
const lostWork = (type: string) => ({ type, severity: 'degraded', remedy: 'restart-workload' }) as const;

const hardware = (severity: string, form = severity): LogRow & Pick<Required<LogRow>, 'counts'> => ({
  name: severity,
  drivers,
  text: new RegExp(`\\[Hardware Error\\]: tile\\d+ reported .{0,60}?\\b${form}\\b`, 'i'),
  means: `the card reported a ${severity} hardware error`,
  source: `${DRIVER}/xe/xe_hw_error.c`,
  counts: { metric: metrics.hardwareErrors, labels: { severity } },
});

/**
 * Lines of the drivers. They print about a card with `dev_printk` (drm_err, drm_info). Only the core of DRM prints the start of a driver
 * without the device (DRM_INFO in drm_dev_register).
 */
export const logRows: readonly LogRow[] = [
  ...startRows(drivers),
  {
    name: 'loaded',
    drivers,
    text: /^\[drm\] Initialized (?:i915|xe) .{0,60}for (?<device>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) on minor \d+$/,
    withoutDevice: { class: 'pci', name: '{device}' },
    means: 'the driver was loaded and reported no such fault since',
    source: `${DRIVER}/drm_drv.c`,
    ends: [startFailed, Wedged, HardwareFatal],
  },
  {
    name: 'initialized',
    drivers,
    text: drm('Initialized (?:i915|xe) '),
    means: 'the driver was loaded and reported no such fault since',
    source: `${DRIVER}/drm_drv.c, since Linux 6.11`,
    ends: [startFailed, Wedged, HardwareFatal],
  },
  {
    name: 'wedged',
    drivers,
    text: /declared device \S+ as wedged|device wedged, needs recovery|declaring (?:it|device) wedged/,
    means: 'the driver declared the card as wedged',
    source: `${DRIVER}/xe/xe_device.c, drm_drv.c, i915/gt/intel_reset.c`,
    raises: { condition: Wedged },
  },
  {
    name: 'reset-failed',
    drivers,
    text: drm('(?:reset failed \\(-|Failed to reset chip|[\\w ]{1,30} timed out, cancelling all in-flight rendering)'),
    means: 'the driver could not reset the card, and gives it up',
    source: `${DRIVER}/xe/xe_gt.c, gt_reset; i915/gt/intel_reset.c, intel_gt_reset and intel_wedge_me`,
    raises: { condition: Wedged },
  },
  {
    name: 'recovered',
    drivers,
    // Later "but no recovery needed".
    text: /device wedged, but /,
    means: 'the driver recovered the card by a reset',
    source: `${DRIVER}/drm_drv.c`,
    counts: { metric: metrics.recoveries },
  },
  {
    name: 'gpu-hang',
    drivers,
    text: drm('GPU HANG: ecode [0-9a-f:]+(?:, in (?<process>.{1,15}) \\[(?<pid>\\d+)\\])?'),
    means: 'the driver found an engine that did not move on',
    source: `${DRIVER}/i915/i915_gpu_error.c`,
    fault: lostWork('GpuHang'),
  },
  {
    name: 'context-reset',
    drivers,
    text: drm('(?<process>.{1,15})\\[(?<pid>\\d+)\\] context reset due to GPU hang'),
    means: 'the driver ended the context of {process}, which hung',
    source: `${DRIVER}/i915/gt/intel_reset.c`,
    fault: lostWork('ContextReset'),
  },
  {
    name: 'job-timeout',
    drivers,
    text: drm('Timedout job: .*?(?: in (?<process>.{1,15}) \\[(?<pid>-?\\d+)\\])?$'),
    means: 'a job did not end in time',
    source: `${DRIVER}/xe/xe_guc_submit.c`,
    repeats: EngineResets,
    fault: lostWork('JobTimeout'),
  },
  {
    name: 'engine-reset',
    drivers,
    // Before Linux 6.10, xe names only the queue.
    text: drm('(?:Engine reset: (?:engine_class=(?<class>\\w+)|(?<queue>guc_id=\\d+))|Resetting (?<engine>[a-z]+\\d+) for )'),
    means: 'the driver reset an engine: {class}{queue}{engine}',
    source: `${DRIVER}/xe/xe_guc_submit.c, i915/gt/intel_reset.c`,
    repeats: EngineResets,
    fault: lostWork('EngineReset'),
  },
  {
    name: 'engine-reset-failed',
    drivers,
    text: drm('(?:GUC: Engine reset|GuC engine reset request) failed on (?:\\d+:\\d+ \\((?<engine>\\w+)\\)|(?<number>\\d+:\\d+) )'),
    means: 'the firmware that schedules work (GuC) could not reset the engine {engine}{number}: a reset of the card follows',
    source: `${DRIVER}/i915/gt/uc/intel_guc_submission.c, xe/xe_guc_submit.c`,
    repeats: EngineResets,
    fault: lostWork('EngineReset'),
  },
  {
    name: 'card-reset',
    drivers,
    text: drm('(?:reset started|Resetting chip for )'),
    means: 'the driver reset all engines of the card',
    source: `${DRIVER}/xe/xe_gt.c, i915/gt/intel_reset.c`,
    fault: lostWork('CardReset'),
  },
  {
    name: 'memory-fault',
    drivers,
    text: drm('Engine memory CAT error'),
    means: 'a program used memory that it does not have',
    source: `${DRIVER}/xe/xe_guc_submit.c`,
    fault: lostWork('MemoryFault'),
  },
  {
    name: 'firmware-crash',
    drivers,
    text: /\bguc\b.{0,20} (?:crash dump|exception)/i,
    means: 'the firmware that schedules work (GuC) crashed',
    source: `${DRIVER}/xe/xe_guc.c, i915/gt/uc/intel_guc_ct.c`,
    fault: lostWork('FirmwareCrash'),
  },
  {
    name: 'firmware-silent',
    drivers,
    // Before Linux 6.4, i915 does not say that a line of the channel (CT) is of the GuC.
    text: drm(
      '(?:(?:GUC: |GuC )?(?:TLB invalidation (?:response timed out|fence timeout)|CT: (?:No response for request|Communication stalled for)|mmio request 0x[0-9a-f]+: no reply)|Timed out wait for G2H, fence |(?:No forward process on H2G|G2H channel broken on read, .{1,40}), reset required)',
    ),
    means: 'the firmware that schedules work (GuC) did not answer the driver',
    source: `${DRIVER}/i915/gt/uc/intel_guc_ct.c, ct_send and ct_deadlocked; intel_guc_submission.c, guc_send_invalidate_tlb; xe/xe_guc_ct.c, guc_ct_send_recv; xe_tlb_inval.c`,
    repeats: FirmwareSilent,
    fault: { type: 'FirmwareSilent', severity: 'info', remedy: 'restart-workload' },
  },
  {
    name: 'coredump',
    drivers,
    text: drm('(?:Xe device coredump has been created|GPU error state saved to )'),
    means: 'the driver saved the state of the card for a report',
    source: `${DRIVER}/xe/xe_devcoredump.c, i915/i915_gpu_error.c`,
  },
  { ...hardware('fatal'), raises: { condition: HardwareFatal } },
  { ...hardware('nonfatal', 'non-?fatal'), repeats: HardwareNonfatal },
  hardware('correctable'),
];
