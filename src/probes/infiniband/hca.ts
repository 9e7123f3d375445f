import type { Tree } from '../../host/tree.ts';
import { PCIE_EVERY_MS, type PcieSample, readPcie } from '../pcie.ts';
import { type CounterPass, CounterPlan, NOTHING_READ, portPlaces } from './counter-plan.ts';
import { type CharDevices, CLASS, type Place } from './discover.ts';
import { type HcaFacts, readHcaFacts } from './facts.ts';
import { type PortFacts, type PortLevel, readPortLevel } from './port.ts';
import { NEW_PORT, type PortMemory, remember } from './port-memory.ts';

/** One look at one port. */
export interface PortSample {
  readonly port: string;
  readonly facts: PortFacts;
  readonly level: PortLevel;
  readonly memory: PortMemory;
  readonly counters: CounterPass;
}

/** One look at one device. */
export interface HcaSample {
  readonly facts: HcaFacts;
  readonly ports: readonly PortSample[];
  readonly device: CounterPass;
  readonly pcie?: PcieSample;
  /** True while a container's network namespace has the device: it is there, and cannot be seen. */
  readonly isElsewhere?: true;
}

/** One device from its appearance to its disappearance: what was found once, and the way to look again. */
export class Hca {
  readonly identity: string;
  readonly place: Place;
  readonly #sys: Tree;
  readonly #withHardware: boolean;
  readonly #memories: Map<string, PortMemory>;
  readonly #plans = new Map<string, CounterPlan>();
  readonly #devicePlan: CounterPlan;
  #facts: HcaFacts;
  #pcie: { readonly sample: PcieSample; readonly readAtMs: number } | undefined;

  constructor(sys: Tree, name: string, identity: string, found: HcaDiscovery) {
    this.#sys = sys;
    this.identity = identity;
    this.place = found.place;
    this.#withHardware = found.withHardware;
    this.#memories = found.memories;
    this.#devicePlan = new CounterPlan(sys, found.withHardware ? [['device', `${CLASS}/${name}/hw_counters`]] : [], {});
    this.#facts = readHcaFacts(sys, name, found.place, found.charDevices);
    this.#plan();
  }

  /** Reads the slow facts anew and looks for counter files that came or went. */
  refreshFacts(charDevices: CharDevices): void {
    this.#facts = readHcaFacts(this.#sys, this.#facts.name, this.place, charDevices);
    this.#devicePlan.relist();
    this.#plan();
  }

  read(nowMs: number): HcaSample {
    const pcie = this.#readPcie(nowMs);
    const isAsleep = pcie?.link.isAsleep === true;
    const ports = [...this.#facts.ports].map(([port, facts]) =>
      isAsleep ? this.#unseenPort(port, facts) : this.#readPort(port, facts, nowMs),
    );
    const device = isAsleep ? NOTHING_READ : this.#devicePlan.read(nowMs);
    return { facts: this.#facts, ports, device, ...(pcie && { pcie }) };
  }

  /** The device while its files cannot be seen, as when it was moved into a container's network namespace. */
  elsewhere(): HcaSample {
    const ports = [...this.#facts.ports].map(([port, facts]) => this.#unseenPort(port, facts));
    return { facts: this.#facts, ports, device: NOTHING_READ, isElsewhere: true };
  }

  /** Asking a sleeping function for its state would wake it, or hang. */
  #unseenPort(port: string, facts: PortFacts): PortSample {
    return { port, facts, level: {}, memory: this.#memories.get(port) ?? NEW_PORT, counters: NOTHING_READ };
  }

  #plan(): void {
    const { name, ports } = this.#facts;
    for (const port of this.#plans.keys()) if (!ports.has(port)) this.#plans.delete(port);
    for (const port of ports.keys()) {
      const plan = this.#plans.get(port);
      if (plan !== undefined) plan.relist();
      else this.#plans.set(port, new CounterPlan(this.#sys, portPlaces(`${CLASS}/${name}/ports/${port}`, this.#withHardware), { port }));
    }
  }

  #readPort(port: string, facts: PortFacts, nowMs: number): PortSample {
    const level = readPortLevel(this.#sys, `${CLASS}/${this.#facts.name}/ports/${port}`);
    const before = this.#memories.get(port) ?? NEW_PORT;
    const memory = remember(before, level);
    this.#memories.set(port, memory);
    const plan = this.#plans.get(port) as CounterPlan;
    // A port that comes up may have counters that it had not while it was down.
    if (memory.isActive && !before.isActive) plan.forgive();
    return { port, facts, level, memory, counters: plan.read(nowMs) };
  }

  #readPcie(nowMs: number): PcieSample | undefined {
    const { kind, pciAddress } = this.place;
    // Virtual and scalable functions report their physical function's link, or nothing.
    if (kind !== 'pf' || pciAddress === undefined) return undefined;
    if (this.#pcie === undefined || nowMs - this.#pcie.readAtMs >= PCIE_EVERY_MS) {
      this.#pcie = { sample: readPcie(this.#sys, pciAddress), readAtMs: nowMs };
    }
    return this.#pcie.sample;
  }
}

/** What discovery knows of a device before its first read. */
export interface HcaDiscovery {
  readonly place: Place;
  readonly charDevices: CharDevices;
  readonly withHardware: boolean;
  /** Port number to memory; outlives the device, so that a reset does not make a faulty port look uncabled. */
  readonly memories: Map<string, PortMemory>;
}
