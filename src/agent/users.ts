import { isDeepStrictEqual } from 'node:util';
import { isAllowed } from '../health/occupancy/explained.ts';
import type { CheckpointUids } from '../join/processes.ts';
import { isDelegating, usersOf } from '../join/users.ts';
import type { Allocation } from '../model/allocation.ts';
import type { HeldRecord } from '../model/device-record.ts';
import type { DelegationRules, DeviceUser, UseLimits } from '../model/device-use.ts';
import { areHoldersKnown, type PodFactsByName, type PodResources } from '../model/pod-resources.ts';
import type { Moment } from './known-devices.ts';
import type { Relatives } from './steps/kin.ts';
import type { UseSettings } from './use.ts';

interface UserFacts {
  readonly kin: Relatives;
  /** Without them, no device is watched. */
  readonly settings: UseSettings | undefined;
  readonly limits: UseLimits;
  readonly podResources: PodResources;
  readonly inCheckpoint: CheckpointUids;
  readonly pods: PodFactsByName | undefined;
}

interface UserHistory {
  /** Who holds the device, a part of it or its whole. */
  readonly holders: readonly Allocation[];
  /** When these holders were first seen. */
  readonly fromMs: number;
  /** End of the first read that showed a process of the pod, by UID. */
  readonly seenMs: ReadonlyMap<string, number>;
  readonly users: readonly DeviceUser[];
  readonly delegating: readonly Allocation[];
}

const NO_DELEGATION: DelegationRules = { holders: [], ids: [] };
const NOTHING: Omit<UserHistory, 'fromMs'> = { holders: [], seenMs: new Map(), users: [], delegating: [] };

/**
 * Finds the users of each device. The kubelet allocates a device before its container starts: a pod is a user when a read showed its process,
 * and an answer of the kubelet after that read does not name the device for it.
 */
export class UserTracker {
  #kept: ReadonlyMap<string, UserHistory> = new Map();

  /** Adds `users` and `delegating` to the records. */
  look(records: readonly HeldRecord[], facts: UserFacts, now: Moment): void {
    const byKey = new Map(records.map((record) => [record.key, record]));
    const kept = new Map<string, UserHistory>();
    for (const record of records) {
      // The processes of a whole are those of its parts.
      const isWatched = facts.settings?.activities.get(record.device.family)?.isForHoldersOnly === true;
      if (!isWatched || facts.kin.parts(record.key).length > 0) continue;
      const kinHolders = facts.kin.of(record.key).flatMap((key) => byKey.get(key)?.holders ?? []);
      const one = after(this.#kept.get(record.key), record, [...record.holders, ...kinHolders], facts, now);
      kept.set(record.key, one);
      if (one.users.length > 0) Object.assign(record, { users: one.users });
      if (one.delegating.length > 0) Object.assign(record, { delegating: one.delegating });
    }
    this.#kept = kept;
  }
}

function after(
  before: UserHistory | undefined,
  { current }: HeldRecord,
  holders: readonly Allocation[],
  { settings, limits, podResources, inCheckpoint, pods }: UserFacts,
  { monotonicMs }: Moment,
): UserHistory {
  const known = before ?? { ...NOTHING, fromMs: Number.NEGATIVE_INFINITY };
  const fromMs = isDeepStrictEqual(holders, known.holders) ? known.fromMs : monotonicMs;
  const delegating = holders.filter((holder) => isDelegating(settings?.delegation ?? NO_DELEGATION, holder, pods));
  if (current === undefined) return { ...NOTHING, holders, fromMs, delegating };
  const using = usersOf(
    (current.processes ?? []).filter((process) => !isAllowed(process, limits)),
    holders,
    inCheckpoint,
    pods,
  );
  const wasUser = ({ uid }: DeviceUser): boolean => known.users.some((user) => user.uid === uid);
  // A read from before the present holders shows the processes of earlier ones, and while the kubelet does not answer nobody is new.
  const isNews = current.startedMs >= fromMs && areHoldersKnown(podResources);
  if (!isNews) return { holders, fromMs, seenMs: known.seenMs, users: using.filter(wasUser), delegating };
  const seenMs = new Map(using.map(({ uid }) => [uid, known.seenMs.get(uid) ?? current.monotonicMs]));
  const { answeredMonotonicMs = Number.NEGATIVE_INFINITY } = podResources;
  const users = using.filter((user) => wasUser(user) || (seenMs.get(user.uid) as number) < answeredMonotonicMs);
  return { holders, fromMs, seenMs, users, delegating };
}
