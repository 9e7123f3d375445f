import { entries, list, record, type SavedSchema, SPAN, TEXT, TIME } from '../host/fs/saved-schema.ts';
import { MOST_ENDED } from './ended-accounts.ts';

/** Each container with its devices, on the largest node: 1,000 pods that share 16 adapters. */
const MOST_ACCOUNTS = 16_384;
/** Names within one account: ids, engines, counters. */
const MOST_NAMES = 4_096;

const VALUE = { type: ['number', 'string'] };
const READING = { type: 'array', minItems: 2, items: [TEXT, VALUE, { type: 'object' }] };
const COUNTER = {
  type: 'array',
  minItems: 3,
  items: [TEXT, VALUE, { type: ['array', 'null'], minItems: 2, items: VALUE }, { type: 'object' }],
};

const NAMES = { namespace: TEXT, pod: TEXT, container: TEXT, resource: TEXT, device: TEXT };

const DEVICE = record(
  { key: TEXT, startedAtMs: TIME, allocatedMs: SPAN, unallocatedMs: SPAN, unhealthyMs: SPAN, unobservedMs: SPAN, identity: record({}) },
  { facts: record({}), former: record({ uid: TEXT, pod: TEXT }) },
);

const ACTIVE = record(
  {
    name: TEXT,
    ...NAMES,
    ids: entries(TEXT, MOST_NAMES),
    startedAtMs: TIME,
    allocatedMs: SPAN,
    shareMs: SPAN,
    busyMs: entries(SPAN, MOST_NAMES),
    idleMs: SPAN,
    unobservedMs: SPAN,
    seenAgoMs: SPAN,
    ageMs: SPAN,
    isShown: { type: 'boolean' },
    counters: list(COUNTER, MOST_NAMES),
  },
  {
    ...{ uid: TEXT, energyEstimatedJoules: SPAN, memoryByteSeconds: { type: 'number', minimum: 0 }, lastActiveMs: TIME },
    ...{ run: TEXT, restarts: SPAN, restartedMs: TIME },
  },
);

const SECONDS = { type: 'number', minimum: -1, maximum: 8.64e12 };
const AGES = { ageMs: SPAN, endedForMs: SPAN };

const ENDED = record({
  ...AGES,
  usage: record(
    {
      ...NAMES,
      sinceMs: TIME,
      allocatedSeconds: SECONDS,
      shareSeconds: SECONDS,
      busySeconds: entries(SECONDS, MOST_NAMES),
      idleSeconds: SECONDS,
      unobservedSeconds: SECONDS,
    },
    { uid: TEXT, endedAtMs: TIME, lastActiveMs: TIME, counters: list(READING, MOST_NAMES) },
  ),
});

const ENDED_DEVICE = record({
  ...AGES,
  usage: record(
    {
      device: TEXT,
      sinceMs: TIME,
      allocatedSeconds: SECONDS,
      unallocatedSeconds: SECONDS,
      unhealthySeconds: SECONDS,
      unobservedSeconds: SECONDS,
    },
    { endedAtMs: TIME },
  ),
});

/** Version 2 has lists where version 3 has names. */
const many = (of: SavedSchema, most = MOST_ACCOUNTS): SavedSchema => ({
  ...entries(of, most),
  ...list(of, most),
  type: ['object', 'array'],
});

/** What a saved usage is. */
export const USAGE_SCHEMA = record(
  {
    savedAtMs: TIME,
    sinceBootMs: SPAN,
    accounts: record(
      { devices: many(DEVICE), active: many(ACTIVE), ended: many(ENDED, 2 * MOST_ENDED) },
      { endedDevices: many(ENDED_DEVICE) },
    ),
  },
  {
    waiting: entries(
      record({}, { usualBytes: { type: 'number' }, stepSeconds: SECONDS, lastProgressMs: TIME, longestWaitMs: SPAN, run: TEXT }),
      MOST_ACCOUNTS,
    ),
  },
);
