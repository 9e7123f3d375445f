import { hours, minutes } from '../../model/duration.ts';
import type { ConditionSpec, Finding, Severity } from '../../model/health.ts';
import { declaredFinding } from '../kit/finding.ts';
import { logCondition, logGrowth } from '../kit/log-row.ts';
import { startFailed } from '../kit/pcie/bus-conditions.ts';
import { pcieErrorFindings, pcieFindings } from '../kit/pcie/health.ts';
import { overTemperature, overTemperatureCondition } from '../kit/temperature.ts';
import type { AwakeSample, CardReadResult } from './card.ts';
import type { ThrottleSample } from './gts.ts';

export const DRIVER = 'Linux drivers/gpu/drm';

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
  return declaredFinding(conditions.Survivability, isIn ? 'SurvivabilityMode' : 'NormalMode', { status: isIn, message });
}

/** Heat and faults of the power supply need a person. Limits of power are how the card works. */
const severityOf = (reason: string): Severity => (/thermal|prochot|^vr_/.test(reason) ? 'degraded' : 'info');

function throttleFindings({ reasons, unknown }: ThrottleSample): Finding[] {
  const { Throttled } = conditions;
  const held = [...reasons].flatMap(([reason, gts]): Finding[] => {
    if (gts.length === 0) return [];
    const message = `${reason} on ${gts.join(', ')}`;
    return [declaredFinding(Throttled, 'Throttled', { instance: reason, status: true, severity: severityOf(reason), message })];
  });
  if (unknown.length === 0)
    return [...held, declaredFinding(Throttled, 'NotThrottled', { status: false, message: 'no other reason holds' })];
  const message = `the reasons of ${unknown.join(', ')} cannot be read`;
  const others = [...reasons].filter(([, gts]) => gts.length === 0);
  return [...held, ...others.map(([instance]) => declaredFinding(Throttled, 'Unreadable', { instance, status: 'unknown', message }))];
}

function downgraded(status: boolean | 'unknown'): Finding {
  const { LinkDowngraded } = conditions;
  if (status === 'unknown')
    return declaredFinding(LinkDowngraded, 'Unreadable', { status, message: 'the state of the link cannot be read' });
  const message = status ? 'the card trained its link at a lower speed' : 'the card trained its link as it can';
  return declaredFinding(LinkDowngraded, status ? 'Downgraded' : 'AsTrained', { status, message });
}
