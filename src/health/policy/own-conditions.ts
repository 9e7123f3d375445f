import { seconds } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';

export const DEVICE_MISSING = 'DeviceMissing';
export const DEVICE_NOT_READ = 'DeviceNotRead';
export const FLAPPING = 'Flapping';

/** Conditions that the engine itself finds: every device of every family can have them. */
export const OWN_CONDITIONS: readonly ConditionSpec[] = [
  {
    type: DEVICE_MISSING,
    class: 'latched',
    severity: 'fatal',
    reasons: ['NotListed'],
    meaning:
      'A device is absent from a complete reading of its family. It stays listed for the retention time. A device that is listed and cannot be read is unknown, not missing. If the policy lowers the severity, the verdict is unknown.',
    remedy: 'inspect',
    source: 'Counts at once; cleared after the device was present for three readings at the default interval.',
    recoveryMs: seconds(30),
  },
  {
    type: DEVICE_NOT_READ,
    class: 'no-data',
    severity: 'degraded',
    reasons: ['Stale', 'NeverRead'],
    meaning: 'The device was not read for longer than the stale age. The verdict is then unknown, unless a fatal condition was known.',
    remedy: 'inspect',
    source: 'The age of the last reading compared with health.stale-after.',
  },
  {
    type: FLAPPING,
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['Repeated'],
    meaning:
      'One condition became active several times within the window. Flapping has the severity of that condition and lasts until reads have shown during the whole quiet time that the condition does not hold, so that the device is not allocated in between.',
    remedy: 'inspect',
    source: 'Three times within 12 hours, as GPUd counts link flaps; cleared after a quiet hour.',
  },
];
