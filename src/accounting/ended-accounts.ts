import { areSameLabels, type Reading } from '../model/metric.ts';
import type { ContainerUsage, DeviceUsage } from '../model/usage.ts';

/** Most accounts that are kept after their end. */
export const MOST_ENDED = 2_000;

/** An account that ended a short time ago. */
export interface EndedAccount<T extends ContainerUsage | DeviceUsage = ContainerUsage> {
  readonly usage: T;
  /** Time since the start and since the end, on the monotonic clock and over restarts of the agent. */
  readonly ageMs: number;
  readonly endedForMs: number;
}

export interface EndedTimes {
  readonly zeroForMs: number;
  readonly lingerMs: number;
}

/** The accounts after more time. One leaves when its final values could be seen for `lingerMs`; the oldest leave first beyond the limit. */
export function stepEnded<T extends ContainerUsage | DeviceUsage>(
  ended: readonly EndedAccount<T>[],
  ms: number,
  { zeroForMs, lingerMs }: EndedTimes,
): readonly EndedAccount<T>[] {
  if (ended.length === 0) return ended;
  return ended.slice(-MOST_ENDED).flatMap(({ usage, ...times }) => {
    const [ageMs, endedForMs] = [times.ageMs + ms, times.endedForMs + ms];
    if (endedForMs >= lingerMs && ageMs >= zeroForMs + lingerMs) return [];
    return [{ usage: ageMs >= zeroForMs ? shown(usage) : usage, ageMs, endedForMs }];
  });
}

/** The account with these counters of faults. The same one when it has them. */
export function withFaults(account: EndedAccount, faults: readonly Reading[]): EndedAccount {
  const { counters = [] } = account.usage;
  const isOther = ({ metric, labels = {} }: Reading): boolean =>
    faults.every((fault) => fault.metric !== metric || !areSameLabels(fault.labels, labels));
  const isKnown = (fault: Reading): boolean =>
    counters.some(({ metric, labels, value }) => metric === fault.metric && value === fault.value && areSameLabels(labels, fault.labels));
  if (faults.every(isKnown)) return account;
  return { ...account, usage: { ...account.usage, counters: [...counters.filter(isOther), ...faults] } };
}

function shown<T extends ContainerUsage | DeviceUsage>(usage: T): T {
  if (!('isNew' in usage)) return usage;
  const { isNew: _, ...rest } = usage;
  return rest as T;
}
