import type { ReadResult, Tree } from '../../host/fs/tree.ts';
import type { Reading } from '../../model/metric.ts';
import { areSameFields } from '../../model/readings.ts';
import type { Pace } from '../kit/pace.ts';
import type { ReadingWriter } from '../kit/reading-writer.ts';
import { CounterFiles, type Counters, NO_COUNTERS } from './counter-files.ts';
import { type PhysicalState, type PortState, parseLid, parsePhysicalState, parsePortState, parseRate, type Rate } from './counters.ts';
import type { InfinibandOptions } from './declaration.ts';
import { metrics } from './metrics.ts';

/** Current state of a port. Each file causes its own firmware query, so two values may contradict each other. */
export interface PortLevel {
  readonly state: PortState | undefined;
  readonly physicalState: PhysicalState | undefined;
  readonly rate: Rate | undefined;
  /** Whether the network interface of a disabled port is set up. Undefined when unknown, and for all other ports. */
  readonly isInterfaceUp: boolean | undefined;
  /** The driver prints the same state whatever the link does, and no interface of the function tells more. */
  readonly isUntold?: true;
  /** Name of the errno when `state` cannot be read; `EBADMSG` when its text is not a known state. */
  readonly error: string | undefined;
}

const BYTES_PER_GIGABIT = 125_000_000;

const UNKNOWN_LEVEL: PortLevel = {
  state: undefined,
  physicalState: undefined,
  rate: undefined,
  isInterfaceUp: undefined,
  error: undefined,
};

/** Facts of a port that rarely change. They are read at a long interval. */
export interface PortFacts {
  /** `InfiniBand`, `Ethernet` (RoCE), `Unknown`. */
  readonly linkLayer?: string;
  readonly netdev?: string;
  readonly lid?: number;
  /** On an InfiniBand port, 0 means that no subnet manager has configured it. */
  readonly smLid?: number;
}

/** State of a port that is kept between reads, also across a reset of its device. */
export interface PortMemory {
  /** A port that was never active is not cabled, which is no fault. */
  readonly wasEverActive: boolean;
  readonly isActive: boolean;
  /** Number of times that the port went from active to another state. */
  readonly losses: number;
}

const NEW_PORT: PortMemory = { wasEverActive: false, isActive: false, losses: 0 };

/** Result of one read of one port. */
export interface PortSample {
  readonly port: string;
  readonly facts: PortFacts;
  readonly level: PortLevel;
  readonly memory: PortMemory;
  readonly counters: Counters;
}

interface PortPlace {
  readonly directory: string;
  readonly driver: string | undefined;
  readonly port: string;
}

/** Linux drivers/infiniband/hw/efa/efa_verbs.c, `efa_query_port`: active and up, always. */
const WITH_FIXED_STATE: ReadonlySet<string | undefined> = new Set(['efa']);

/** One port from the time its device appears until the device disappears. */
export class Port {
  readonly #sys: Tree;
  readonly #directory: string;
  readonly #port: string;
  readonly #memories: Map<string, PortMemory>;
  readonly #files: CounterFiles;
  readonly #isFixed: boolean;
  #facts: PortFacts = {};
  #level: ReadLevel | undefined;
  #last: PortSample | undefined;
  #told: { readonly level: PortLevel; readonly facts: PortFacts; readonly readings: readonly Reading[] } | undefined;

  /** `directory` and `driver` are those of the device. `memories` outlive the device. */
  constructor(sys: Tree, { directory, driver, port }: PortPlace, options: InfinibandOptions, memories: Map<string, PortMemory>) {
    this.#sys = sys;
    this.#directory = `${directory}/ports/${port}`;
    this.#port = port;
    this.#isFixed = WITH_FIXED_STATE.has(driver);
    this.#memories = memories;
    const sets = options['hw-counters'] ? (['hw_counters', 'counters_ext', 'counters'] as const) : (['counters_ext', 'counters'] as const);
    this.#files = new CounterFiles(
      sys,
      driver,
      sets.map((set) => [set, `${this.#directory}/${set}`]),
      { port },
    );
  }

  /** Reads the facts that rarely change, and lists the counters. `netdev` is the network interface of the port, if it has one. */
  readFacts(netdev: string | undefined): PortFacts {
    const text = (file: string): string | undefined => this.#sys.text(`${this.#directory}/${file}`);
    const linkLayer = text('link_layer');
    const [lid, smLid] = [parseLid(text('lid') ?? ''), parseLid(text('sm_lid') ?? '')];
    this.#facts = {
      ...(linkLayer && { linkLayer }),
      ...(netdev && (linkLayer === 'Ethernet' || this.#isFixed) && { netdev }),
      ...(lid !== undefined && { lid }),
      ...(smLid !== undefined && { smLid }),
    };
    this.#files.list();
    return this.#facts;
  }

  read(pace: Pace, readings: ReadingWriter): PortSample {
    const level = this.#readLevel();
    readings.addAll(this.#stateReadings(level));
    const counters = this.#files.read(pace, readings);
    for (const counter of counters.saturated) readings.add(metrics.counterSaturated.name, 1, { port: this.#port, counter });
    return this.#sample(level, counters);
  }

  /** Returns a sample without any read. A read would wake a sleeping function, or block; in another namespace it is impossible. */
  emptySample(readings?: ReadingWriter): PortSample {
    readings?.addAll(this.#stateReadings(UNKNOWN_LEVEL));
    return this.#sample(UNKNOWN_LEVEL, NO_COUNTERS);
  }

  /** The same object while the port says the same. */
  #sample(level: PortLevel, counters: Counters): PortSample {
    const sample = { port: this.#port, facts: this.#facts, level, memory: this.#memories.get(this.#port) ?? NEW_PORT, counters };
    if (!areSameFields(this.#last, sample)) this.#last = sample;
    return this.#last as PortSample;
  }

  /** The same objects while state and facts of the port are the same. */
  #stateReadings(level: PortLevel): readonly Reading[] {
    const facts = this.#facts;
    if (this.#told?.level !== level || this.#told.facts !== facts)
      this.#told = { level, facts, readings: stateReadings(this.#port, level, facts) };
    return this.#told.readings;
  }

  #readLevel(): PortLevel {
    this.#level = readLevel(this.#sys, this.#directory, this.#facts.netdev, this.#level, this.#isFixed);
    const { level } = this.#level;
    const before = this.#memories.get(this.#port) ?? NEW_PORT;
    const memory = updateMemory(before, level);
    this.#memories.set(this.#port, memory);
    // Some counters cannot be read while a port is down. They may be readable once it is up.
    if (memory.isActive && !before.isActive) this.#files.resetRetries();
    return level;
  }
}

/** What the files of a state held, and the level of it. */
interface ReadLevel {
  readonly files: readonly (ReadResult | boolean | undefined)[];
  readonly level: PortLevel;
}

/** The level is the same object as before while all files hold the same. */
function readLevel(sys: Tree, directory: string, netdev: string | undefined, before: ReadLevel | undefined, isFixed: boolean): ReadLevel {
  const stateFile = sys.reread(`${directory}/state`);
  if (stateFile.error !== undefined) return { files: [], level: { ...UNKNOWN_LEVEL, error: stateFile.error } };
  const physical = sys.reread(`${directory}/phys_state`);
  const physicalState = parsePhysicalState(physical.text ?? '');
  const carrier = isFixed && netdev !== undefined ? carrierOf(sys, netdev) : undefined;
  const isUp = (physicalState === 'disabled' || carrier === false) && netdev !== undefined ? isInterfaceUp(sys, netdev) : undefined;
  const rate = sys.reread(`${directory}/rate`);
  const files = [stateFile, physical, rate, isUp, carrier];
  if (before !== undefined && files.every((file, at) => file === before.files[at])) return before;
  const state = parsePortState(stateFile.text);
  if (isFixed && state !== undefined)
    return { files, level: { ...levelByInterface(netdev, carrier, isUp), rate: parseRate(rate.text ?? '') } };
  return {
    files,
    level: {
      state,
      physicalState,
      isInterfaceUp: isUp,
      rate: parseRate(rate.text ?? ''),
      error: state === undefined ? 'EBADMSG' : undefined,
    },
  };
}

function levelByInterface(netdev: string | undefined, carrier: boolean | undefined, isUp: boolean | undefined): PortLevel {
  if (netdev === undefined) return { ...UNKNOWN_LEVEL, isUntold: true };
  if (carrier === undefined) return UNKNOWN_LEVEL;
  if (carrier) return { ...UNKNOWN_LEVEL, state: 'active', physicalState: 'link_up' };
  return { ...UNKNOWN_LEVEL, state: 'down', physicalState: 'disabled', isInterfaceUp: isUp };
}

/** Whether an interface has a link. The file `carrier` of one that is set down fails with EINVAL. Source: Linux Documentation/ABI/testing/sysfs-class-net. */
function carrierOf(sys: Tree, netdev: string): boolean | undefined {
  const carrier = sys.text(`class/net/${netdev}/carrier`);
  if (carrier === '0' || carrier === '1') return carrier === '1';
  const state = sys.text(`class/net/${netdev}/operstate`);
  if (state === 'up') return true;
  return state === 'down' || state === 'lowerlayerdown' || state === 'notpresent' ? false : undefined;
}

const IFF_UP = 0x1;

/**
 * RoCE drivers report a port as disabled both when its interface is set down and when the interface has no carrier.
 * Source: Linux drivers/infiniband/hw/mlx5/main.c, `mlx5_query_port_roce`; include/uapi/linux/if.h, `IFF_UP`.
 */
function isInterfaceUp(sys: Tree, netdev: string): boolean | undefined {
  const flags = sys.text(`class/net/${netdev}/flags`);
  return flags !== undefined && /^0x[0-9a-f]{1,8}$/i.test(flags) ? (Number(flags) & IFF_UP) !== 0 : undefined;
}

/** Returns the memory after a read of the port. A read without a state does not change it. */
function updateMemory(memory: PortMemory, level: PortLevel): PortMemory {
  if (level.state === undefined) return memory;
  const isActive = level.state === 'active' || level.state === 'active_defer';
  if (isActive === memory.isActive && (memory.wasEverActive || !isActive)) return memory;
  return {
    wasEverActive: memory.wasEverActive || isActive,
    isActive,
    losses: memory.losses + (memory.isActive && !isActive ? 1 : 0),
  };
}

/**
 * Returns true when a port can carry traffic; undefined when its state is unknown. A port that initializes, or that waits as `active_defer`,
 * is not up, and has no PortDown either.
 */
export function isPortUp(level: PortLevel): boolean | undefined {
  return level.state === undefined ? undefined : level.state === 'active' && (level.physicalState ?? 'link_up') === 'link_up';
}

/** Returns lanes and speed in the usual form, for example `4X NDR`. */
export function rateText(rate: Rate | undefined): string {
  if (rate?.lanes === undefined) return '';
  return rate.speed === undefined ? `${rate.lanes}X` : `${rate.lanes}X ${rate.speed}`;
}

function stateReadings(port: string, level: PortLevel, facts: PortFacts): readonly Reading[] {
  const labels = { port };
  const readings: Reading[] = [];
  const isUp = isPortUp(level);
  if (isUp !== undefined) readings.push({ metric: metrics.linkUp.name, labels, value: isUp ? 1 : 0 });
  if (level.rate !== undefined) {
    readings.push({ metric: metrics.linkSpeed.name, labels, value: level.rate.gigabits * BYTES_PER_GIGABIT });
    if (level.rate.lanes !== undefined) readings.push({ metric: metrics.linkWidth.name, labels, value: level.rate.lanes });
  }
  readings.push(
    { metric: metrics.portInfo.name, labels: { port, ...infoLabels(level, facts) }, value: 1 },
    ...stateReading(metrics.portState.name, port, level.state),
    ...stateReading(metrics.portPhysicalState.name, port, level.physicalState),
  );
  return readings;
}

function infoLabels(level: PortLevel, facts: PortFacts): Readonly<Record<string, string>> {
  return {
    link_layer: facts.linkLayer ?? '',
    netdev: facts.netdev ?? '',
    rate: rateText(level.rate),
    lid: facts.lid === undefined ? '' : String(facts.lid),
    sm_lid: facts.smLid === undefined ? '' : String(facts.smLid),
  };
}

const stateReading = (metric: string, port: string, state: string | undefined): Reading[] =>
  state === undefined ? [] : [{ metric, labels: { port, state }, value: 1 }];
