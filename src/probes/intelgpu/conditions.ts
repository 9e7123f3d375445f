import { hours, minutes } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';
import { growthCondition } from '../kit/growth-condition.ts';
import { overTemperatureCondition } from '../kit/temperature.ts';

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
  Wedged: {
    type: 'Wedged',
    class: 'latched',
    severity: 'fatal',
    reasons: ['DeclaredWedged', 'DriverLoaded'],
    meaning: 'The driver gave up the card. All work on it fails until an operator recovers it.',
    remedy: 'reload-driver',
    source: `kernel log: ${DRIVER}/xe/xe_device.c "declared device … as wedged", drm_drv.c "device wedged, needs recovery"; ends when the driver starts again`,
    outOfBand: true,
  },
  HardwareFatal: {
    type: 'HardwareFatal',
    class: 'latched',
    severity: 'fatal',
    reasons: ['FatalError', 'DriverLoaded'],
    meaning: 'The card reported a fatal hardware error.',
    remedy: 'reboot',
    source: `kernel log: ${DRIVER}/xe/xe_hw_error.c "[Hardware Error]: Tile<n> reported FATAL error"; ends when the driver starts again`,
    outOfBand: true,
  },
  HardwareNonfatal: {
    ...growthCondition({
      type: 'HardwareNonfatal',
      severity: 'degraded',
      meaning: 'The card reported a hardware error that could not be corrected. Work on it may have failed.',
      remedy: 'inspect',
      source: `kernel log: ${DRIVER}/xe/xe_hw_error.c "[Hardware Error]: Tile<n> reported NONFATAL error"`,
      growth: 0,
      windowMs: hours(1),
    }),
    outOfBand: true,
  },
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
