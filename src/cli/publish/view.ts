import { defined } from '../../model/defined.ts';
import { deviceKey } from '../../model/device.ts';
import { type FamilyReading, familyReadingsIn } from '../../model/family-reading.ts';
import type { DeviceAnswer, NodeView } from '../../model/known-well.ts';
import type { WholeBoard } from '../../server/api/views.ts';

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
  /** The answer of the API, for what the feed does not have. */
  readonly board: WholeBoard;
  /** From the feed; undefined when the agent does not tell them. */
  readonly families: readonly FamilyReading[] | undefined;
}

const STATES = { HEALTHY: 'healthy', UNHEALTHY: 'unhealthy', UNKNOWN: 'unknown' } as const;

/** What the agent says, for the rule about what may be called well. */
export function nodeViewOf({ feed, board, families }: AgentView): NodeView<DeviceAnswer> {
  const byKey = new Map(board.devices.map((device) => [device.key, device]));
  const seen = feed.map((device): DeviceAnswer => {
    const key = deviceKey(device);
    const { missingSince, stale } = byKey.get(key) ?? {};
    return defined({ key, health: { state: STATES[device.state] }, missingSince, stale });
  });
  return { devices: seen, families, ...defined({ expected: board.expected }) };
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
