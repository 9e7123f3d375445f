import type { Device } from '../../../model/device.ts';
import type { ConditionSpec } from '../../../model/health.ts';
import type { LogReach } from '../kernel-log.ts';

/** What the log tells of the starts of drivers. */
export interface StartLog {
  /** Reads new records. `devices`: those that lines can be about. */
  follow(devices: readonly Device[]): void;
  readonly reach: LogReach;
  /** A start of the device failed, and none succeeded since. */
  holds(address: string, condition: Pick<ConditionSpec, 'type'>): boolean;
  /** The device has a driver since before the last collection, so the failure is over. */
  end?(address: string, condition: Pick<ConditionSpec, 'type'>, message: string): void;
}
