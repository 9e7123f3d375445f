import { isDeepStrictEqual } from 'node:util';
import type { Tree } from '../../host/fs/tree.ts';
import { CounterFiles, type Counters, NO_COUNTERS } from './counter-files.ts';
import { type InfinibandOptions, isDue } from './options.ts';
import { type PhysicalState, type PortState, parseLid, parsePhysicalState, parsePortState, parseRate, type Rate } from './parse.ts';

/** What a port says of itself now. Each file is a question of its own to the firmware, so two of them need not agree. */
export interface PortLevel {
  readonly state: PortState | undefined;
  readonly physicalState: PhysicalState | undefined;
  readonly rate: Rate | undefined;
  /** Whether the network interface of a disabled port was set up. Undefined for every other port, and where nothing tells. */
  readonly isInterfaceUp: boolean | undefined;
  /** Errno name when `state` could not be read; `EBADMSG` when it reads as text that is no state. */
  readonly error: string | undefined;
}

const NOTHING_SAID: PortLevel = {
  state: undefined,
  physicalState: undefined,
  rate: undefined,
  isInterfaceUp: undefined,
  error: undefined,
};

/** What changes rarely, read at a slow pace. */
export interface PortFacts {
  /** `InfiniBand`, `Ethernet` (RoCE), `Unknown`. */
  readonly linkLayer?: string;
  readonly netdev?: string;
  readonly lid?: number;
  /** 0 on an InfiniBand port: no subnet manager has spoken to it. */
  readonly smLid?: number;
}

/** What is remembered of a port between reads, also across a reset of its device. */
export interface PortMemory {
  /** A port that was never up is not cabled, which is no fault. */
  readonly wasEverActive: boolean;
  readonly isActive: boolean;
  /** How often it was seen to go from up to down. */
  readonly losses: number;
}

const NEW_PORT: PortMemory = { wasEverActive: false, isActive: false, losses: 0 };

/** One look at one port. */
export interface PortSample {
  readonly port: string;
  readonly facts: PortFacts;
  readonly level: PortLevel;
  readonly memory: PortMemory;
  readonly counters: Counters;
}

/** One port from the appearance of its device to its disappearance. */
export class Port {
  readonly #sys: Tree;
  readonly #directory: string;
  readonly #port: string;
  readonly #options: InfinibandOptions;
  readonly #memories: Map<string, PortMemory>;
  readonly #files: CounterFiles;
  #facts: PortFacts = {};
  /** Undefined before the first read, and after the port could not be seen. */
  #level: PortLevel | undefined;
  #levelAtMs = Number.NEGATIVE_INFINITY;
  #counters = NO_COUNTERS;
  #countersAtMs = Number.NEGATIVE_INFINITY;

  /** `directory` is that of its device, `memories` outlive the device. */
  constructor(sys: Tree, directory: string, port: string, options: InfinibandOptions, memories: Map<string, PortMemory>) {
    this.#sys = sys;
    this.#directory = `${directory}/ports/${port}`;
    this.#port = port;
    this.#options = options;
    this.#memories = memories;
    const sets = options['hw-counters'] ? (['hw_counters', 'counters_ext', 'counters'] as const) : (['counters_ext', 'counters'] as const);
    this.#files = new CounterFiles(
      sys,
      sets.map((set) => [set, `${this.#directory}/${set}`]),
      { port },
    );
  }

  /** Reads what changes rarely, and looks which counters there are. `netdev`: the network interface of the port, where it has one. */
  readFacts(netdev: string | undefined): PortFacts {
    const text = (file: string): string | undefined => this.#sys.text(`${this.#directory}/${file}`);
    const linkLayer = text('link_layer');
    const [lid, smLid] = [parseLid(text('lid') ?? ''), parseLid(text('sm_lid') ?? '')];
    this.#facts = {
      ...(linkLayer && { linkLayer }),
      ...(netdev && linkLayer === 'Ethernet' && { netdev }),
      ...(lid !== undefined && { lid }),
      ...(smLid !== undefined && { smLid }),
    };
    this.#files.list();
    return this.#facts;
  }

  read(nowMs: number): PortSample {
    const before = this.#level;
    if (before === undefined || isDue(this.#levelAtMs, this.#options['state-interval'], nowMs)) this.#level = this.#readLevel(nowMs);
    // A port that changed is looked at in full, whatever the pace.
    const hasChanged = !isDeepStrictEqual(this.#level, before);
    if (hasChanged || isDue(this.#countersAtMs, this.#options['counter-interval'], nowMs)) {
      this.#countersAtMs = nowMs;
      this.#counters = this.#files.read(nowMs);
    }
    return this.#sample(this.#level ?? NOTHING_SAID, this.#counters);
  }

  /** The port while its files must not be read, or cannot be seen: asking a sleeping function would wake it, or hang. */
  unseen(): PortSample {
    this.#level = undefined;
    return this.#sample(NOTHING_SAID, NO_COUNTERS);
  }

  #sample(level: PortLevel, counters: Counters): PortSample {
    return { port: this.#port, facts: this.#facts, level, memory: this.#memories.get(this.#port) ?? NEW_PORT, counters };
  }

  #readLevel(nowMs: number): PortLevel {
    this.#levelAtMs = nowMs;
    const level = readLevel(this.#sys, this.#directory, this.#facts.netdev);
    const before = this.#memories.get(this.#port) ?? NEW_PORT;
    const memory = remember(before, level);
    this.#memories.set(this.#port, memory);
    // A port that comes up may have counters that it had not while it was down.
    if (memory.isActive && !before.isActive) this.#files.forgive();
    return level;
  }
}

function readLevel(sys: Tree, directory: string, netdev: string | undefined): PortLevel {
  const { text, error } = sys.reread(`${directory}/state`);
  if (error !== undefined) return { ...NOTHING_SAID, error };
  const state = parsePortState(text);
  const physicalState = parsePhysicalState(sys.reread(`${directory}/phys_state`).text ?? '');
  return {
    state,
    physicalState,
    isInterfaceUp: physicalState === 'disabled' && netdev !== undefined ? isInterfaceUp(sys, netdev) : undefined,
    rate: parseRate(sys.reread(`${directory}/rate`).text ?? ''),
    error: state === undefined ? 'EBADMSG' : undefined,
  };
}

const IFF_UP = 0x1;

/**
 * Drivers of RoCE devices call a port disabled both when its interface was set down and when the interface has no carrier.
 * Source: Linux drivers/infiniband/hw/mlx5/main.c, `mlx5_query_port_roce`; include/uapi/linux/if.h, `IFF_UP`.
 */
function isInterfaceUp(sys: Tree, netdev: string): boolean | undefined {
  const flags = sys.text(`class/net/${netdev}/flags`);
  return flags !== undefined && /^0x[0-9a-f]{1,8}$/i.test(flags) ? (Number(flags) & IFF_UP) !== 0 : undefined;
}

/** The memory after one more look at the port. A look that told nothing changes nothing. */
function remember(memory: PortMemory, level: PortLevel): PortMemory {
  if (level.state === undefined) return memory;
  const isActive = level.state === 'active' || level.state === 'active_defer';
  return {
    wasEverActive: memory.wasEverActive || isActive,
    isActive,
    losses: memory.losses + (memory.isActive && !isActive ? 1 : 0),
  };
}

/** True when a port carries traffic; undefined when it does not say. */
export function isPortUp(level: PortLevel): boolean | undefined {
  return level.state === undefined ? undefined : level.state === 'active' && (level.physicalState ?? 'link_up') === 'link_up';
}

/** `4X NDR`, as people say it. */
export function rateWord(rate: Rate | undefined): string {
  if (rate?.lanes === undefined) return '';
  return rate.speed === undefined ? `${rate.lanes}X` : `${rate.lanes}X ${rate.speed}`;
}
