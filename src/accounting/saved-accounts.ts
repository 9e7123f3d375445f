import { entries, list, SPAN, shape, TEXT, TIME } from '../host/fs/saved-schema.ts';
import type { SavedFormat } from '../host/fs/saved-state.ts';
import { defined } from '../model/defined.ts';
import { restoredValue } from '../model/metric.ts';
import type { ContainerUsage } from '../model/usage.ts';
import { type ContainerAccount, seenAt } from './account.ts';
import { OwnCounters, restoredCounter } from './own-counters.ts';

/** The accounts as plain data, by names that only distinguish them. In JSON, a `bigint` is its digits. */
export interface AccountsState {
  readonly containers: Readonly<Record<string, SavedContainer>>;
}

interface SavedContainer extends Pick<ContainerAccount, 'name' | 'ids' | 'identity' | 'ageMs' | 'endedForMs'> {
  readonly usage: ContainerUsage;
}

/** The accounts on the disk, with both clocks of their last step. */
export interface SavedUsage extends AccountsState {
  readonly times: { /** Wall clock. */ readonly savedAtMs: number /** CLOCK_MONOTONIC, from the boot on. */; readonly sinceBootMs: number };
  /** What the waiting detector knows about each container. */
  readonly waiting: Readonly<Record<string, object>>;
}

export const USAGE_FORMAT: SavedFormat = { format: 'device-agent-usage', version: 5, name: 'usage state' };

/** Each container with its devices, on the largest node: 1,000 pods that share 16 adapters. */
const MOST_ACCOUNTS = 16_384;
/** Names within one account: ids, engines, counters. */
const MOST_NAMES = 4_096;
/** A sum of fractions may be a little below 0. */
const SECONDS = { type: 'number', minimum: -0.001, maximum: 8.64e12 };
const AMOUNT = { type: 'number', minimum: 0 };
/** Digits, where a number would round. */
const VALUE = { type: ['number', 'string'], pattern: '^\\d{1,40}$', minimum: 0 };
const TEXTS = entries(TEXT, MOST_NAMES);

/** `ContainerUsage` as JSON, in the saved state and in a line of the ledger. */
export const CONTAINER_USAGE = shape(
  {
    ...{ namespace: TEXT, pod: TEXT, container: TEXT, resource: TEXT, device: TEXT, sinceMs: TIME },
    ...{ allocatedSeconds: SECONDS, shareSeconds: SECONDS, idleSeconds: SECONDS, unobservedSeconds: SECONDS },
    busySeconds: entries(SECONDS, MOST_NAMES),
  },
  {
    ...{ uid: TEXT, model: TEXT, labels: TEXTS, endedAtMs: TIME, lastActiveMs: TIME, delegatedSeconds: SECONDS, isNew: { const: true } },
    ...{ energyJoules: AMOUNT, energyEstimatedJoules: AMOUNT, memoryByteSeconds: AMOUNT, receivedBytes: VALUE, transmittedBytes: VALUE },
    counters: list(shape({ metric: TEXT, value: VALUE }, { labels: TEXTS, last: VALUE }), MOST_NAMES),
  },
);

/** What a {@link SavedUsage} is. */
export const USAGE_SCHEMA = shape({
  times: shape({ savedAtMs: TIME, sinceBootMs: SPAN }),
  containers: entries(
    shape({ name: TEXT, usage: CONTAINER_USAGE, ids: TEXTS, identity: TEXTS, ageMs: SPAN }, { endedForMs: SPAN }),
    MOST_ACCOUNTS,
  ),
  waiting: entries(
    shape({}, { usualBytes: { type: 'number' }, stepSeconds: SECONDS, lastProgressMs: TIME, longestWaitMs: SPAN, run: TEXT }),
    MOST_ACCOUNTS,
  ),
});

export const savedAccounts = (containers: readonly ContainerAccount[]): AccountsState => ({
  containers: Object.fromEntries(
    containers.map((account) => {
      const { device, uid, sinceMs, endedAtMs } = account.usage;
      return [[device, account.name, uid, sinceMs, endedAtMs].join(' '), savedContainer(account)];
    }),
  ),
});

/** Of the time that no read has classified, a later run will know no more. */
function savedContainer({ name, ids, identity, ageMs, endedForMs, usage, counters, pendingMs }: ContainerAccount): SavedContainer {
  const unobservedSeconds = usage.unobservedSeconds + pendingMs / 1_000;
  const saved = { ...usage, busySeconds: { ...usage.busySeconds }, unobservedSeconds, counters: counters.readings() };
  return { name, ids, identity, ageMs, ...defined({ endedForMs }), usage: saved };
}

/** The accounts of an earlier run, as they were at `atMs` on the monotonic clock of this run. After a reboot they ended when they were saved. */
export const restoredAccounts = ({ containers }: AccountsState, savedAtMs: number, atMs: number | undefined): readonly ContainerAccount[] =>
  Object.values(containers).map(({ usage: { counters = [], ...usage }, ...saved }) => ({
    ...{ ...(atMs === undefined && { endedForMs: 0 }), ...saved, pendingMs: 0, isAwaited: true, ...seenAt(atMs ?? 0) },
    usage: { ...(atMs === undefined && { endedAtMs: savedAtMs }), ...usage, busySeconds: { ...usage.busySeconds } },
    counters: OwnCounters.restored(counters.flatMap(restoredCounter)),
  }));

/** The usage of a line of the ledger, with the values that JSON has as digits. */
export function restoredUsage<T extends Partial<ContainerUsage>>(usage: T): T {
  const { receivedBytes, transmittedBytes } = usage;
  return { ...usage, ...defined({ receivedBytes: restoredValue(receivedBytes), transmittedBytes: restoredValue(transmittedBytes) }) };
}
