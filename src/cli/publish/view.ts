import type { ExpectedDevices } from '../../model/expected.ts';
import type { ApiDevice } from '../api-device.ts';

/** One device in the health feed. */
export interface FeedDevice {
  readonly family: string;
  readonly id: string;
  readonly state: 'HEALTHY' | 'UNHEALTHY' | 'UNKNOWN';
}

/** The last answers of the agent. */
export interface AgentView {
  /** The verdicts, which count: while the agent does not work, the feed reports all devices as unknown, and its API has the last snapshot. */
  readonly feed: readonly FeedDevice[];
  /** The devices in the API, for what the feed does not have. */
  readonly devices: readonly ApiDevice[];
  readonly expected: readonly ExpectedDevices[];
}

/** Returns the devices of a line of the feed; undefined for a heartbeat and for what is no such line. */
export function feedDevicesIn(line: unknown): readonly FeedDevice[] | undefined {
  const devices = (line as { readonly devices?: unknown } | undefined | null)?.devices;
  const isFeedDevice = (one: Partial<FeedDevice> | null): boolean =>
    typeof one?.family === 'string' &&
    typeof one.id === 'string' &&
    (one.state === 'HEALTHY' || one.state === 'UNHEALTHY' || one.state === 'UNKNOWN');
  return Array.isArray(devices) && devices.every(isFeedDevice) ? devices : undefined;
}
