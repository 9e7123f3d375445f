import { entries, list, shape, TEXT, TIME } from '../../host/fs/saved-schema.ts';

/** Devices of all families that one node can have, with those that are kept after they are gone. */
const MOST_DEVICES = 16_384;
/** Conditions, counters and parts of one device. */
const MOST_NAMES = 4_096;
/** Events that a state keeps are far fewer. */
const MOST_EVENTS = 16_384;
const MOST_TEXTS = 65_536;

const COUNT = { type: 'integer', minimum: 0 };
const COUNTS = entries(COUNT, MOST_NAMES);
const STATE = { enum: ['healthy', 'degraded', 'unhealthy', 'unknown'] };
const TEXTS = list(TEXT, MOST_TEXTS);

const DEVICE = shape({ family: TEXT, id: TEXT, kind: TEXT, aliases: TEXTS }, { parent: TEXT, pciAddress: TEXT, uuid: TEXT });

const HOLDERS = list(shape({ namespace: TEXT, pod: TEXT }), MOST_TEXTS);

const CONDITION = shape(
  {
    type: TEXT,
    phase: { enum: ['pending', 'active', 'recovering'] },
    sinceMs: TIME,
    countsFromMs: TIME,
    reason: TEXT,
    message: TEXT,
  },
  { instance: TEXT, severity: TEXT, remedy: TEXT, causedBy: TEXT, holders: HOLDERS, unverifiedSinceMs: TIME },
);

const RATE = shape({
  value: { type: 'number', minimum: 0 },
  atMs: TIME,
  points: { ...list({ type: 'array', items: { type: 'number' }, minItems: 2 }, MOST_NAMES), minItems: 1 },
});

const MEMORY = shape(
  {
    device: DEVICE,
    listedAtMs: TIME,
    verdict: shape({ state: STATE, sinceMs: TIME }),
    transitions: COUNTS,
    conditions: entries(CONDITION, MOST_NAMES),
    rates: entries(RATE, MOST_NAMES),
    activations: entries(list(TIME, MOST_NAMES), MOST_NAMES),
  },
  {
    readAtMs: TIME,
    missingSinceMs: TIME,
    levels: shape({ highest: entries({ type: 'number' }, MOST_NAMES) }),
    user: shape({ pods: HOLDERS }, { endedAtMs: TIME }),
    unchecked: TEXTS,
  },
);

const EVENT = shape(
  { id: COUNT, timeMs: TIME, device: TEXT, family: TEXT, transition: TEXT, reason: TEXT, message: TEXT, remedy: TEXT, holders: HOLDERS },
  { condition: TEXT, instance: TEXT, severity: TEXT, from: STATE, to: STATE },
);

const PLACE = shape({ seq: { type: 'number' }, usec: { type: 'number' } });
const HOLDER = shape({ holder: shape({ namespace: TEXT, pod: TEXT, container: TEXT }), fromMs: TIME }, { uid: TEXT, untilMs: TIME });
const FAULT_COUNTS = entries(COUNT, MOST_NAMES);
const REPEAT = shape(
  { type: TEXT, reason: TEXT, message: TEXT, seen: list({ type: 'array', items: [TIME, TEXT], minItems: 2 }, MOST_NAMES) },
  { instance: TEXT, remedy: TEXT },
);
const FAULTS = shape(
  {
    marks: entries(PLACE, MOST_NAMES),
    byEvents: entries(list({ type: 'array', items: TIME, minItems: 2 }, MOST_NAMES), MOST_NAMES),
    totals: entries(FAULT_COUNTS, MOST_DEVICES),
    own: entries(FAULT_COUNTS, MOST_TEXTS),
    held: entries(list(HOLDER, MOST_NAMES), MOST_DEVICES),
  },
  { answeredAtMs: TIME, aheadMs: { type: 'number' }, repeats: entries(list(REPEAT, MOST_NAMES), MOST_DEVICES) },
);
const FAULT = shape(
  {
    ...{ id: TEXT, device: TEXT, type: TEXT, code: TEXT, reason: TEXT, severity: TEXT, remedy: TEXT, message: TEXT, blame: TEXT },
    ...{ timeMs: TIME, lastMs: TIME, count: COUNT, toldCount: COUNT, lines: TEXTS, holders: HOLDERS },
  },
  { process: shape({ pid: COUNT }, { containerId: TEXT }) },
);

const HUNG = list(shape({ kind: { enum: ['file', 'call'] }, path: TEXT }), MOST_TEXTS);

/** What a saved health state is. */
export const MEMORY_SCHEMA = shape(
  { judgedAtMs: TIME, lastEventId: COUNT, devices: entries(MEMORY, MOST_DEVICES), events: list(EVENT, MOST_EVENTS) },
  {
    faults: FAULTS,
    faultList: list(FAULT, MOST_EVENTS),
    hung: entries(HUNG, MOST_NAMES),
    completed: TEXTS,
    unreturned: entries(shape({ device: DEVICE, listedAtMs: TIME }), MOST_DEVICES),
    watched: shape({
      spans: list(shape({ fromMs: TIME, untilMs: TIME }), MOST_TEXTS),
      since: entries(TIME, MOST_TEXTS),
    }),
  },
);
