import type { NodeView, SeenDevice } from '../../health/journal/known-well.ts';
import { deviceKey } from '../../model/device.ts';
import type { ExpectedDevices } from '../../model/expected.ts';
import { type FamilyReading, familyReadingsIn } from '../../model/family-reading.ts';
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
  /** From the feed; undefined when the agent does not tell them. */
  readonly families: readonly FamilyReading[] | undefined;
}

const STATES = { HEALTHY: 'healthy', UNHEALTHY: 'unhealthy', UNKNOWN: 'unknown' } as const;

/** What the agent says, for the rule about what may be called well. */
export function nodeViewOf({ feed, devices, families, expected }: AgentView): NodeView<SeenDevice> {
  const byKey = new Map(devices.map((device) => [deviceKey(device), device]));
  const seen = feed.map((device): SeenDevice => {
    const known = byKey.get(deviceKey(device));
    const verdict = { state: STATES[device.state] };
    return { key: deviceKey(device), verdict, isMissing: known?.missingSince !== undefined, isStale: known?.stale === true };
  });
  return { devices: seen, families, expected };
}

/** One complete message of the feed. */
export type FeedMessage = Pick<AgentView, 'feed' | 'families'>;

/** Returns the content of a line of the feed; undefined for a heartbeat and for what is no such line. */
export function feedMessageIn(line: unknown): FeedMessage | undefined {
  const devices = (line as { readonly devices?: unknown } | undefined | null)?.devices;
  const isFeedDevice = (one: Partial<FeedDevice> | null): boolean =>
    typeof one?.family === 'string' && typeof one.id === 'string' && Object.hasOwn(STATES, one.state ?? '');
  return Array.isArray(devices) && devices.every(isFeedDevice) ? { feed: devices, families: familyReadingsIn(line) } : undefined;
}
