import type { KeptFiles } from '../../host/kept-files.ts';
import type { KeptGroup } from '../../host/kept-group.ts';
import { type CounterPass, NOTHING_READ } from './counter-pass.ts';
import { CounterPlan } from './counter-plan.ts';
import { portPlaces } from './counter-slots.ts';
import { isDue, type Paces } from './paces.ts';
import { NOTHING_SAID, type PortFacts, PortFactsReader, type PortLevel, PortLevelReader } from './port.ts';
import { NEW_PORT, type PortMemory, remember } from './port-memory.ts';

/** One look at one port; the look before if there is nothing new to see. */
export interface PortSample {
  readonly port: string;
  readonly facts: PortFacts;
  readonly level: PortLevel;
  readonly memory: PortMemory;
  readonly counters: CounterPass;
}

/** One port from the appearance of its device to its disappearance. */
export class PortReader {
  readonly #port: string;
  readonly #files: KeptGroup;
  readonly #facts: PortFactsReader;
  readonly #levels: PortLevelReader;
  readonly #plan: CounterPlan;
  readonly #paces: Paces;
  readonly #memories: Map<string, PortMemory>;
  #levelAtMs = Number.NEGATIVE_INFINITY;
  #countersAtMs = Number.NEGATIVE_INFINITY;
  #sample: PortSample | undefined;

  constructor(keeper: KeptFiles, directory: string, port: string, settings: PortReaderSettings) {
    this.#port = port;
    this.#paces = settings.paces;
    this.#memories = settings.memories;
    const places = portPlaces(directory, settings.withHardware);
    this.#files = keeper.group(directory, [directory, ...places.map(([, place]) => place)]);
    this.#facts = new PortFactsReader(this.#files, directory);
    this.#levels = new PortLevelReader(keeper.tree, this.#files, directory);
    this.#plan = new CounterPlan(keeper.tree, this.#files, places, { port });
  }

  /** Looks for files that came, went or were replaced. */
  relist(): void {
    if (this.#files.hasChanged()) this.#sample = undefined;
    else this.#files.refresh();
    this.#plan.relist();
  }

  /** What changes rarely. `netdev`: the network interface of the port, where it has one. */
  facts(netdev: string | undefined): PortFacts {
    return this.#facts.read(netdev);
  }

  read(facts: PortFacts, nowMs: number): PortSample {
    if (this.#files.hasChanged()) {
      this.#plan.relist();
      this.#sample = undefined;
    }
    const before = this.#sample;
    const level =
      before !== undefined && !isDue(this.#levelAtMs, this.#paces.levelMs, nowMs) ? before.level : this.#readLevel(facts, nowMs);
    const remembered = this.#memories.get(this.#port) ?? NEW_PORT;
    const memory = before?.level === level && before.memory === remembered ? remembered : this.#remember(remembered, level);
    // A port that changed is looked at in full, whatever the pace.
    const isQuiet = before !== undefined && before.level === level && !isDue(this.#countersAtMs, this.#paces.countersMs, nowMs);
    const counters = isQuiet ? before.counters : this.#readCounters(nowMs);
    const isSame =
      before !== undefined && before.facts === facts && before.level === level && before.memory === memory && before.counters === counters;
    if (isSame) return before;
    this.#sample = { port: this.#port, facts, level, memory, counters };
    return this.#sample;
  }

  /** The port while its files must not be read, or cannot be seen: asking a sleeping function would wake it, or hang. */
  unseen(facts: PortFacts): PortSample {
    const memory = this.#memories.get(this.#port) ?? NEW_PORT;
    this.#sample = undefined;
    return { port: this.#port, facts, level: NOTHING_SAID, memory, counters: NOTHING_READ };
  }

  close(): void {
    this.#files.close();
  }

  #readLevel({ netdev }: PortFacts, nowMs: number): PortLevel {
    this.#levelAtMs = nowMs;
    return this.#levels.read(netdev);
  }

  #readCounters(nowMs: number): CounterPass {
    this.#countersAtMs = nowMs;
    return this.#plan.read(nowMs);
  }

  #remember(before: PortMemory, level: PortLevel): PortMemory {
    const memory = remember(before, level);
    this.#memories.set(this.#port, memory);
    // A port that comes up may have counters that it had not while it was down.
    if (memory.isActive && !before.isActive) this.#plan.forgive();
    return memory;
  }
}

export interface PortReaderSettings {
  readonly withHardware: boolean;
  readonly paces: Paces;
  /** Port number to memory; outlives the device. */
  readonly memories: Map<string, PortMemory>;
}
