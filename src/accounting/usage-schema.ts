import { entries, list, type SavedSchema, SPAN, shape, TEXT, TIME } from '../host/fs/saved-schema.ts';
import { restoredValue } from '../model/metric.ts';
import type { ContainerUsage } from '../model/usage.ts';
import { MOST_ENDED } from './container-account.ts';
import { restoredCounter } from './own-counters.ts';

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
    ...{
      uid: TEXT,
      beganAs: TEXT,
      labels: TEXTS,
      endedAtMs: TIME,
      lastActiveMs: TIME,
      restarts: SPAN,
      delegatedSeconds: SECONDS,
      restartedMs: TIME,
      isNew: { const: true },
    },
    ...{ energyJoules: AMOUNT, energyEstimatedJoules: AMOUNT, memoryByteSeconds: AMOUNT, receivedBytes: VALUE, transmittedBytes: VALUE },
    counters: list(shape({ metric: TEXT, value: VALUE }, { labels: TEXTS, last: VALUE }), MOST_NAMES),
  },
);

/** `DeviceUsage` as JSON, in both. */
export const DEVICE_USAGE = shape(
  {
    ...{ device: TEXT, sinceMs: TIME },
    ...{ allocatedSeconds: SECONDS, unallocatedSeconds: SECONDS, unhealthySeconds: SECONDS, unobservedSeconds: SECONDS },
  },
  { beganAs: TEXT, endedAtMs: TIME, model: TEXT, parent: TEXT },
);

const ended = (usage: SavedSchema): SavedSchema => shape({ usage, ageMs: SPAN, endedForMs: SPAN });

/** What a saved usage is. */
export const USAGE_SCHEMA = shape(
  {
    savedAtMs: TIME,
    sinceBootMs: SPAN,
    accounts: shape({
      devices: entries(
        shape({ usage: DEVICE_USAGE, identity: shape({}), facts: shape({}) }, { former: shape({ uid: TEXT, pod: TEXT }) }),
        MOST_ACCOUNTS,
      ),
      active: entries(
        shape({ name: TEXT, usage: CONTAINER_USAGE, ids: TEXTS, ageMs: SPAN, pendingMs: SPAN, seenAgoMs: SPAN }, { run: TEXT }),
        MOST_ACCOUNTS,
      ),
      ended: entries(ended(CONTAINER_USAGE), 2 * MOST_ENDED),
      endedDevices: entries(ended(DEVICE_USAGE), MOST_ACCOUNTS),
    }),
  },
  {
    waiting: entries(
      shape({}, { usualBytes: { type: 'number' }, stepSeconds: SECONDS, lastProgressMs: TIME, longestWaitMs: SPAN, run: TEXT }),
      MOST_ACCOUNTS,
    ),
  },
);

/** A usage of JSON, with the values that JSON has as digits. */
export function restoredUsage<T extends Partial<ContainerUsage>>({ receivedBytes, transmittedBytes, counters, ...usage }: T) {
  const [received, transmitted] = [restoredValue(receivedBytes), restoredValue(transmittedBytes)];
  return {
    ...usage,
    ...(received === undefined ? {} : { receivedBytes: received }),
    ...(transmitted === undefined ? {} : { transmittedBytes: transmitted }),
    ...(counters === undefined ? {} : { counters: counters.flatMap(restoredCounter) }),
  };
}
