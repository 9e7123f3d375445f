import { seconds } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';

export const DEVICE_MISSING = 'DeviceMissing';
export const DEVICE_NOT_READ = 'DeviceNotRead';
export const FLAPPING = 'Flapping';

/** Conditions that need no probe to be seen: every device of every family can have them. */
export const OWN_CONDITIONS: readonly ConditionSpec[] = [
  {
    type: DEVICE_MISSING,
    class: 'latched',
    severity: 'fatal',
    reasons: ['NotListed'],
    meaning:
      'A device that was there is gone from a complete reading of its family. It stays listed for the retention time. Where the policy has it count for less, the verdict is unknown.',
    remedy: 'inspect',
    source: 'Counts at once; back for three readings at the default interval before it is trusted again.',
    recoveryMs: seconds(30),
  },
  {
    type: DEVICE_NOT_READ,
    class: 'no-data',
    severity: 'degraded',
    reasons: ['Stale', 'NeverRead'],
    meaning:
      'Nothing was read from the device for longer than the stale age. The verdict is then unknown, unless a fatal condition was known.',
    remedy: 'inspect',
    source: 'Age of the last reading against health.stale-after.',
  },
  {
    type: FLAPPING,
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['Repeated'],
    meaning:
      'One condition began to count several times within the window. Takes the severity of that condition, because between two spells the device would be handed out again, until it has been quiet.',
    remedy: 'inspect',
    source: 'Three within 12 hours, as GPUd counts link flaps; withdrawn after a quiet hour.',
  },
];
