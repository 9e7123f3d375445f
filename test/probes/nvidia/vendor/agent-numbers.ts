import { GpuEvents, SystemEvents } from '../../../../src/probes/nvidia/nvml/events.ts';
import { Activities } from '../../../../src/probes/nvidia/nvml/gpm.ts';
import { driverVersionOf, gpuQuestions } from '../../../../src/probes/nvidia/nvml/gpu-questions.ts';
import {
  CODE,
  EVENT,
  FIELD,
  GPM_GET,
  GPM_METRIC,
  SYSTEM_EVENT,
  SYSTEM_EVENT_SET,
  SYSTEM_EVENT_WAIT,
  SYSTEM_REGISTER,
} from '../../../../src/probes/nvidia/nvml/header.ts';
import { NO_ENDS, readLinkEnds, readLinks } from '../../../../src/probes/nvidia/nvml/nvlink.ts';
import { type Question, TrackedDevice } from '../../../../src/probes/nvidia/nvml/question.ts';
import type { EccCount, GpuSample } from '../../../../src/probes/nvidia/sample.ts';
import { type Answerer, type AskedCall, LibraryOfTest } from './answering.ts';

// What the agent means by a number is found by answering one question alone, and looking at which value appears.

const GPU = 7;
const FIELDS = 'nvmlDeviceGetFieldValues';
const [UNSIGNED_LONG_LONG, ERRORS] = [3, 'nvmlDeviceGetMemoryErrorCounter'];

/** Names of what a sample has: values, facts of the identity, error counts, the recovery action. */
function namesIn({ values = {}, identity = {}, ecc = {}, recovery }: GpuSample): readonly string[] {
  const defined = (of: object): string[] => Object.entries(of).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const counted = Object.entries<readonly EccCount[]>({ ...ecc }).flatMap(([period, counts]) =>
    counts.map(({ severity, location }) => `${period} ${severity} ${location}`),
  );
  return [...defined(values), ...defined(identity), ...counted, ...(recovery === undefined ? [] : ['recovery'])];
}

/** Answers one field, or one field of one scope, with a number. */
const answersField =
  (id: number, scope: number, write: (library: LibraryOfTest, at: number) => void): Answerer =>
  ({ symbol, numbers, pointer }, library) => {
    if (symbol !== FIELDS) return undefined;
    for (let at = pointer; at < pointer + (numbers[0] as number) * FIELD.size; at += FIELD.size) {
      const isIt = library.u32(at + FIELD.id) === id && library.u32(at + FIELD.scope) === scope;
      library.setU32(at + FIELD.code, isIt ? CODE.success : CODE.notSupported);
      if (isIt) write(library, at);
    }
    return CODE.success;
  };

/** The number 1, in 64 bits: some values are used only if they have so many. */
const writeOne = (library: LibraryOfTest, at: number): void => {
  library.setU32(at + FIELD.type, UNSIGNED_LONG_LONG);
  library.setU64(at + FIELD.value, 1n);
};

const fieldsAsked = ({ symbol, numbers, pointer }: AskedCall, library: LibraryOfTest): { id: number; scope: number }[] =>
  symbol !== FIELDS
    ? []
    : Array.from({ length: numbers[0] as number }, (_, index) => ({
        id: library.u32(pointer + index * FIELD.size + FIELD.id),
        scope: library.u32(pointer + index * FIELD.size + FIELD.scope),
      }));

/** A number and what the agent means by it. */
export interface Meaning {
  readonly what: string;
  readonly numbers: readonly number[];
}

/** Field ids and, where they have one, their scopes. */
export function fieldMeanings(driver: string): readonly Meaning[] {
  const library = new LibraryOfTest(() => undefined);
  const all = gpuQuestions(driverVersionOf(driver));
  const asked: { question: Question; id: number; scope: number }[] = [];
  for (const question of all) {
    library.answer = (call) => {
      asked.push(...fieldsAsked(call, library).map((each) => ({ question, ...each })));
      return undefined;
    };
    question.ask({ library, handle: GPU });
  }
  return asked.flatMap(({ question, id, scope }) => {
    library.answer = answersField(id, scope, writeOne);
    return namesIn(question.ask({ library, handle: GPU }).sample).map((what) => ({ what, numbers: [id, ...(scope === 0 ? [] : [scope])] }));
  });
}

/** Numbers in other calls: kinds, thresholds, locations, lengths of texts. */
export function callMeanings(driver: string): readonly Meaning[] {
  const library = new LibraryOfTest(() => CODE.functionNotFound);
  return gpuQuestions(driverVersionOf(driver)).flatMap((question) => {
    library.answer = () => CODE.functionNotFound;
    library.calls.length = 0;
    question.ask({ library, handle: GPU });
    const calls = library.calls.filter(({ symbol, numbers }) => symbol !== FIELDS && numbers.length > 0);
    return calls.flatMap(({ symbol, numbers }) => {
      library.answer = (call) =>
        call.symbol === symbol && String(call.numbers) === String(numbers) ? CODE.success : CODE.functionNotFound;
      // A refusal of the whole call also names what is not read: that is no answer.
      const { values, identity, ecc } = question.ask({ library, handle: GPU }).sample;
      const named = namesIn({ ...(values && { values }), ...(identity && { identity }), ...(ecc && { ecc }) });
      return named.map((what) => ({ what: `${symbol === ERRORS ? 'errors' : symbol} ${what}`, numbers }));
    });
  });
}

/** Numbers from 0 on that a call answers, by the word that the agent has for each. */
export function wordMeanings(driver: string, symbol: string, key: 'brand' | 'architecture' | 'computeMode'): readonly Meaning[] {
  const library = new LibraryOfTest(() => undefined);
  const questions = gpuQuestions(driverVersionOf(driver)).filter((question) => question.symbol === symbol);
  return Array.from({ length: 32 }, (_, number) => number).flatMap((number) => {
    library.answer = ({ pointer }) => {
      library.setU32(pointer, number);
      return CODE.success;
    };
    const word = questions[0]?.ask({ library, handle: GPU }).sample.identity?.[key];
    return word === undefined ? [] : [{ what: `${key} ${word}`, numbers: [number] }];
  });
}

/** Bits of the clock event reasons. */
export function reasonMeanings(driver: string): readonly Meaning[] {
  const library = new LibraryOfTest(() => undefined);
  const symbol = 'nvmlDeviceGetCurrentClocksEventReasons';
  const [question] = gpuQuestions(driverVersionOf(driver)).filter((each) => each.symbol === symbol);
  return Array.from({ length: 31 }, (_, at) => 2 ** at).flatMap((bit) => {
    library.answer = ({ pointer }) => {
      library.setU64(pointer, BigInt(bit));
      return CODE.success;
    };
    const { values = {} } = question?.ask({ library, handle: GPU }).sample ?? {};
    return Object.entries(values).flatMap(([what, isHeld]) => (isHeld === true ? [{ what, numbers: [bit] }] : []));
  });
}

/** Types of field values, by which form of the same eight bytes the agent reads. The power is in milliwatts. */
export function typeMeanings(): readonly Meaning[] {
  const library = new LibraryOfTest(() => undefined);
  const POWER = 186;
  const forms: Readonly<Record<number, string>> = {
    2147483.649: 'u32',
    18446744067267.1: 'u64',
    [-6_442_450.943]: 'i64',
    [-2_147_483.647]: 'i32',
    0.001: 'u16',
    1.5: 'double',
  };
  const bytes = (value: bigint | number): Buffer => {
    const made = Buffer.alloc(8);
    if (typeof value === 'bigint') made.writeBigUInt64LE(value);
    else made.writeDoubleLE(value);
    return made;
  };
  return Array.from({ length: 8 }, (_, type) => type).flatMap((type) => {
    const seen = [bytes(0xffff_fffe_8000_0001n), bytes(1_500)].flatMap((value) => {
      library.answer = answersField(POWER, 0, (_, at) => {
        library.setU32(at + FIELD.type, type);
        library.write(at + FIELD.value, value);
      });
      return gpuQuestions(driverVersionOf('590.44'))
        .filter(({ symbol, interval }) => symbol === FIELDS && interval === 'read')
        .flatMap((question) => {
          const watts = question.ask({ library, handle: GPU }).sample.values?.powerWatts;
          const form = Object.entries(forms).find(([known]) => typeof watts === 'number' && Math.abs(watts / Number(known) - 1) < 1e-9);
          return form === undefined ? [] : [form[1]];
        });
    });
    return [...new Set(seen)].slice(0, 1).map((form) => ({ what: `type ${form}`, numbers: [type] }));
  });
}

/** Metrics of GPM. The means are read at the second sample. */
export function activityMeanings(): readonly Meaning[] {
  let only = -1;
  const asked = new Set<number>();
  const read = (): object => {
    const library = new LibraryOfTest(({ symbol, pointer }, self) => {
      if (symbol === 'nvmlGpmQueryDeviceSupport') self.setU32(pointer + 4, 1);
      if (symbol === 'nvmlGpmSampleAlloc') self.setU32(pointer, 1);
      if (symbol !== 'nvmlGpmMetricsGet') return CODE.success;
      for (let index = 0; index < self.u32(pointer + GPM_GET.count); index += 1) {
        const at = pointer + GPM_GET.header + index * GPM_METRIC.size;
        asked.add(self.u32(at + GPM_METRIC.id));
        self.setU32(at + GPM_METRIC.code, self.u32(at + GPM_METRIC.id) === only ? CODE.success : CODE.notSupported);
      }
      return CODE.success;
    });
    const activities = new Activities(new TrackedDevice(library, GPU, undefined, ''), true);
    for (const ms of [0, 1_000, 2_000]) activities.refresh(ms, false, []);
    return activities.whole() ?? {};
  };
  read();
  return [...asked].flatMap((id) => {
    only = id;
    return Object.entries(read()).flatMap(([what, value]) => (value === undefined ? [] : [{ what, numbers: [id] }]));
  });
}

/** Fields and counters of a link, and the number of a switch at its end. */
export function linkMeanings(): readonly Meaning[] {
  const link: Answerer = ({ symbol, numbers, pointer }, library) => {
    if (symbol !== 'nvmlDeviceGetNvLinkState') return undefined;
    if (numbers[0] !== 0) return CODE.invalidArgument;
    library.setU32(pointer, 1);
    return CODE.success;
  };
  const asked: { id: number; counter?: number }[] = [];
  const noted: Answerer = (call, library) => {
    asked.push(...fieldsAsked(call, library).map(({ id }) => ({ id })));
    if (call.symbol === 'nvmlDeviceGetNvLinkErrorCounter') asked.push({ id: -1, counter: call.numbers[1] as number });
    return link(call, library) ?? (call.symbol === 'nvmlDeviceGetNvLinkErrorCounter' ? CODE.success : undefined);
  };
  readLinks({ library: new LibraryOfTest(noted), handle: GPU });
  const counted = asked.flatMap(({ id, counter }) => {
    const library = new LibraryOfTest((call, self) => {
      const isCounter = call.symbol === 'nvmlDeviceGetNvLinkErrorCounter' && call.numbers[1] === counter;
      return link(call, self) ?? answersField(id, 0, writeOne)(call, self) ?? (isCounter ? CODE.success : undefined);
    });
    const [{ transmittedBytes = undefined, receivedBytes = undefined, errors = {} } = {}] = readLinks({ library, handle: GPU }).links;
    const scale = (bytes: number): string => (bytes === 1 ? 'bytes' : 'KiB');
    const names = [
      ...(transmittedBytes === undefined ? [] : [`link transmitted ${scale(transmittedBytes)}`]),
      ...(receivedBytes === undefined ? [] : [`link received ${scale(receivedBytes)}`]),
      ...Object.keys(errors).map((kind) => `link ${counter === undefined ? '' : 'counter '}${kind}`),
    ];
    return names.map((what) => ({ what, numbers: [counter ?? id] }));
  });
  const switches = Array.from({ length: 8 }, (_, type) => type).filter((type) => {
    const library = new LibraryOfTest(({ symbol, pointer }, self) => {
      self.setU32(pointer, type);
      return symbol === 'nvmlDeviceGetNvLinkRemoteDeviceType' ? CODE.success : undefined;
    });
    return readLinkEnds({ library, handle: GPU }, [{ number: 0, isUp: true }], NO_ENDS).reached.length === 1;
  });
  return [...counted, { what: 'link to a switch', numbers: switches }];
}

/** The events that the agent registers for, of all that a driver can have; and the type that it takes for an Xid. */
export function eventMeanings(): { readonly wanted: number; readonly xid: readonly number[] } {
  let [wanted, type, isTaken] = [0, 0, false];
  const library = new LibraryOfTest(({ symbol, numbers, pointer }, self) => {
    if (symbol === 'nvmlEventSetCreate') self.setU32(pointer, 1);
    if (symbol === 'nvmlDeviceGetSupportedEventTypes') self.setU32(pointer, 0x7fff_ffff);
    if (symbol === 'nvmlDeviceRegisterEvents') wanted = numbers[0] as number;
    if (symbol === 'nvmlEventSetWait_v2') {
      if (isTaken) return CODE.timeout;
      isTaken = true;
      self.setU64(pointer + EVENT.type, BigInt(type));
      self.setU64(pointer + EVENT.data, 79n);
    }
    return CODE.success;
  });
  const events = new GpuEvents(library, undefined);
  events.register([{ device: new TrackedDevice(library, GPU, undefined, '') }]);
  const xid = Array.from({ length: 31 }, (_, at) => 2 ** at).filter((bit) => {
    type = bit;
    isTaken = false;
    return events.take().xids.length === 1;
  });
  return { wanted, xid };
}

/** Events of the driver itself: those that the agent registers for, and the types that it takes for an unbind. */
export function systemEventMeanings(): { readonly wanted: number; readonly unbind: readonly number[] } {
  let [wanted, type] = [0, 0];
  const library = new LibraryOfTest(({ symbol, pointer }, self) => {
    if (symbol === 'nvmlSystemEventSetCreate') self.setU32(pointer + SYSTEM_EVENT_SET.set, 1);
    if (symbol === 'nvmlSystemRegisterEvents') wanted = self.u32(pointer + SYSTEM_REGISTER.types);
    if (symbol === 'nvmlSystemEventSetWait') {
      self.setU32(pointer + SYSTEM_EVENT_WAIT.count, 1);
      self.setU64(self.u32(pointer + SYSTEM_EVENT_WAIT.events) + SYSTEM_EVENT.type, BigInt(type));
    }
    return CODE.success;
  });
  const events = new SystemEvents(library, undefined);
  const unbind = Array.from({ length: 31 }, (_, at) => 2 ** at).filter((bit) => {
    type = bit;
    return events.takeUnbind();
  });
  return { wanted, unbind };
}
