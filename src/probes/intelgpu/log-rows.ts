import type { LogRow } from '../kit/log-row.ts';
import { startFailed, startRows } from '../kit/pcie/bus-conditions.ts';
import { conditions, DRIVER } from './conditions.ts';
import { metrics } from './metrics.ts';

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
