import type { Tree } from '../../host/fs/tree.ts';
import type { Pace } from '../kit/pace.ts';
import { PcieReader, type PcieSample } from '../kit/pcie/pcie.ts';
import type { CharDevices } from './char-devices.ts';
import { CounterFiles, type Counters, NO_COUNTERS } from './counter-files.ts';
import { type HcaFacts, portsOf, readGuid, readHcaFacts } from './device.ts';
import { CLASS, findNetdevs, type Location } from './discover.ts';
import type { InfinibandOptions } from './options.ts';
import { Port, type PortMemory, type PortSample } from './port.ts';

/** Result of one read of one device. */
export interface HcaSample {
  readonly facts: HcaFacts;
  readonly ports: readonly PortSample[];
  readonly device: Counters;
  /** Undefined when the function has no link of its own. */
  readonly pcie: PcieSample | undefined;
  /** True while the device is in the network namespace of a container. It exists, but its files cannot be read. */
  readonly isInOtherNamespace: boolean;
}

/** What is known of a device before its first read. */
export interface HcaSettings {
  readonly name: string;
  readonly identity: string;
  readonly location: Location;
  readonly options: InfinibandOptions;
  /** Keyed by port number. It outlives the device: without it, a faulty port would look uncabled after a reset. */
  readonly memories: Map<string, PortMemory>;
}

/** One device from the time it appears until it disappears. */
export class Hca {
  readonly name: string;
  /** Identity of the device's directory. */
  readonly identity: string;
  readonly location: Location;
  readonly #sys: Tree;
  readonly #options: InfinibandOptions;
  readonly #memories: Map<string, PortMemory>;
  readonly #files: CounterFiles;
  #nodeGuid: string | undefined;
  #ports: ReadonlyMap<string, Port> = new Map();
  #facts: HcaFacts;
  #pcie: PcieReader | undefined;

  constructor(sys: Tree, { name, identity, location, options, memories }: HcaSettings, charDevices: CharDevices) {
    this.#sys = sys;
    this.name = name;
    this.identity = identity;
    this.location = location;
    this.#options = options;
    this.#memories = memories;
    this.#files = new CounterFiles(sys, location.driver, options['hw-counters'] ? [['device', `${this.directory}/hw_counters`]] : []);
    this.#facts = this.#readFacts(charDevices);
  }

  get directory(): string {
    return `${CLASS}/${this.name}`;
  }

  /** Reads the facts that rarely change, and lists the ports and counters. */
  readFacts(charDevices: CharDevices): void {
    this.#facts = this.#readFacts(charDevices);
  }

  read(pace: Pace): HcaSample {
    // A read that failed, as while the device hangs, must not leave the device without an identity until the next listing.
    if (this.#facts.nodeGuid === undefined && this.#facts.hasNoGuid !== true) {
      this.#facts = { ...this.#facts, ...readGuid(this.#sys, this.name) };
      this.#nodeGuid = this.#facts.nodeGuid;
    }
    const pcie = this.#readPcie(pace);
    if (pcie?.link.isAsleep === true) return { ...this.#emptySample(), pcie };
    const ports = [...this.#ports.values()].map((port) => port.read(pace));
    const device = this.#files.read(pace);
    return { facts: this.#facts, ports, device, pcie, isInOtherNamespace: false };
  }

  /** Returns a sample without any read, for a device in the network namespace of a container. */
  sampleInOtherNamespace(): HcaSample {
    return { ...this.#emptySample(), isInOtherNamespace: true };
  }

  #emptySample(): HcaSample {
    const ports = [...this.#ports.values()].map((port) => port.emptySample());
    return { facts: this.#facts, ports, device: NO_COUNTERS, pcie: undefined, isInOtherNamespace: false };
  }

  #readFacts(charDevices: CharDevices): HcaFacts {
    const names = portsOf(this.#sys, this.name);
    const netdevs = findNetdevs(this.#sys, this.directory, names);
    const portOf = (port: string): Port =>
      this.#ports.get(port) ??
      new Port(this.#sys, { directory: this.directory, driver: this.location.driver, port }, this.#options, this.#memories);
    this.#ports = new Map(names.map((port) => [port, portOf(port)]));
    const ports = new Map([...this.#ports].map(([name, port]) => [name, port.readFacts(netdevs.get(name))]));
    this.#files.list();
    const read = readHcaFacts(this.#sys, this.name, this.location, charDevices);
    // It cannot change while the device exists, and without it nobody knows which device this is.
    const nodeGuid = read.nodeGuid ?? this.#nodeGuid;
    this.#nodeGuid = nodeGuid;
    return { ...read, ...(nodeGuid === undefined ? {} : { nodeGuid }), ports };
  }

  #readPcie(pace: Pace): PcieSample | undefined {
    const { kind, pciAddress } = this.location;
    // Virtual and scalable functions report the link of their physical function, or no link.
    if (kind !== 'pf' || pciAddress === undefined) return undefined;
    this.#pcie ??= new PcieReader(this.#sys, pciAddress);
    return this.#pcie.read(pace);
  }
}
