import type { Tree } from '../../host/fs/tree.ts';
import { PCIE_EVERY_MS, type PcieSample, readPcie } from '../pcie.ts';
import type { CharDevices } from './char-devices.ts';
import { CounterFiles, type Counters, NO_COUNTERS } from './counter-files.ts';
import { CLASS, findNetdevs, type Location } from './discover.ts';
import { type HcaFacts, portsOf, readHcaFacts } from './facts.ts';
import { type InfinibandOptions, isDue } from './options.ts';
import { Port, type PortMemory, type PortSample } from './port.ts';

/** One look at one device. */
export interface HcaSample {
  readonly facts: HcaFacts;
  readonly ports: readonly PortSample[];
  readonly device: Counters;
  /** Absent where the function has no link of its own. */
  readonly pcie: PcieSample | undefined;
  /** True while a container's network namespace has the device: it is there, and cannot be seen. */
  readonly isElsewhere: boolean;
}

/** What is known of a device before its first read. */
export interface HcaSettings {
  readonly name: string;
  readonly identity: string;
  readonly location: Location;
  readonly options: InfinibandOptions;
  /** Port number to memory; outlives the device, so that a reset does not make a faulty port look uncabled. */
  readonly memories: Map<string, PortMemory>;
}

/** One device from its appearance to its disappearance. */
export class Hca {
  readonly name: string;
  /** Of its directory. */
  readonly identity: string;
  readonly location: Location;
  readonly #sys: Tree;
  readonly #options: InfinibandOptions;
  readonly #memories: Map<string, PortMemory>;
  readonly #files: CounterFiles;
  #ports: ReadonlyMap<string, Port> = new Map();
  #facts: HcaFacts;
  #counters = NO_COUNTERS;
  #countersAtMs = Number.NEGATIVE_INFINITY;
  #pcie: PcieSample | undefined;
  #pcieAtMs = Number.NEGATIVE_INFINITY;

  constructor(sys: Tree, { name, identity, location, options, memories }: HcaSettings, charDevices: CharDevices) {
    this.#sys = sys;
    this.name = name;
    this.identity = identity;
    this.location = location;
    this.#options = options;
    this.#memories = memories;
    this.#files = new CounterFiles(sys, options['hw-counters'] ? [['device', `${this.directory}/hw_counters`]] : []);
    this.#facts = this.#readFacts(charDevices);
  }

  get directory(): string {
    return `${CLASS}/${this.name}`;
  }

  /** Reads what changes rarely, and looks which ports and counters there are. */
  readFacts(charDevices: CharDevices): void {
    this.#facts = this.#readFacts(charDevices);
  }

  read(nowMs: number): HcaSample {
    const pcie = this.#readPcie(nowMs);
    if (pcie?.link.isAsleep === true) return { ...this.#unseen(), pcie };
    const ports = [...this.#ports.values()].map((port) => port.read(nowMs));
    if (isDue(this.#countersAtMs, this.#options['counter-interval'], nowMs)) {
      this.#countersAtMs = nowMs;
      this.#counters = this.#files.read(nowMs);
    }
    return { facts: this.#facts, ports, device: this.#counters, pcie, isElsewhere: false };
  }

  /** The device while its files cannot be seen, as when it was moved into a container's network namespace. */
  elsewhere(): HcaSample {
    return { ...this.#unseen(), isElsewhere: true };
  }

  #unseen(): HcaSample {
    const ports = [...this.#ports.values()].map((port) => port.unseen());
    return { facts: this.#facts, ports, device: NO_COUNTERS, pcie: undefined, isElsewhere: false };
  }

  #readFacts(charDevices: CharDevices): HcaFacts {
    const names = portsOf(this.#sys, this.name);
    const netdevs = findNetdevs(this.#sys, this.directory, names);
    const portOf = (port: string): Port =>
      this.#ports.get(port) ?? new Port(this.#sys, this.directory, port, this.#options, this.#memories);
    this.#ports = new Map(names.map((port) => [port, portOf(port)]));
    const ports = new Map([...this.#ports].map(([name, port]) => [name, port.readFacts(netdevs.get(name))]));
    this.#files.list();
    return { ...readHcaFacts(this.#sys, this.name, this.location, charDevices), ports };
  }

  #readPcie(nowMs: number): PcieSample | undefined {
    const { kind, pciAddress } = this.location;
    // Virtual and scalable functions report their physical function's link, or nothing.
    if (kind !== 'pf' || pciAddress === undefined) return undefined;
    if (nowMs - this.#pcieAtMs >= PCIE_EVERY_MS) {
      this.#pcieAtMs = nowMs;
      this.#pcie = readPcie(this.#sys, pciAddress);
    }
    return this.#pcie;
  }
}
