import { DirectoryMark } from '../../host/directory-mark.ts';
import type { KeptFiles } from '../../host/kept-files.ts';
import type { KeptGroup } from '../../host/kept-group.ts';
import type { PciFunctions } from '../../host/pci-functions.ts';
import { PCIE_EVERY_MS, type PcieSample } from '../pcie.ts';
import type { CharDevices } from './char-devices.ts';
import { type CounterPass, NOTHING_READ } from './counter-pass.ts';
import { CounterPlan } from './counter-plan.ts';
import { CLASS, type Place } from './discover.ts';
import { FactsReader, type HcaFacts } from './facts.ts';
import { isDue, type Paces } from './paces.ts';
import type { PortFacts } from './port.ts';
import type { PortMemory } from './port-memory.ts';
import { PortReader, type PortSample } from './port-reader.ts';

export type { PortSample } from './port-reader.ts';

/** One look at one device; the look before if there is nothing new to see. */
export interface HcaSample {
  readonly facts: HcaFacts;
  readonly ports: readonly PortSample[];
  readonly device: CounterPass;
  /** Absent where the function has no link of its own. */
  readonly pcie: PcieSample | undefined;
  /** True while a container's network namespace has the device: it is there, and cannot be seen. */
  readonly isElsewhere: boolean;
}

/** One device from its appearance to its disappearance: what was found once, and the way to look again. */
export class Hca {
  readonly identity: string;
  readonly place: Place;
  readonly #directory: string;
  readonly #keeper: KeptFiles;
  readonly #mark: DirectoryMark;
  readonly #found: HcaDiscovery;
  readonly #ports = new Map<string, PortReader>();
  /** Those that the facts name, in their order. */
  #told: readonly { readonly reader: PortReader; readonly facts: PortFacts }[] = [];
  readonly #deviceFiles: KeptGroup;
  readonly #devicePlan: CounterPlan;
  #deviceAtMs = Number.NEGATIVE_INFINITY;
  readonly #factsReader: FactsReader;
  #facts: HcaFacts;
  #pcie: { readonly sample: PcieSample | undefined; readonly readAtMs: number } | undefined;
  #latest: HcaSample | undefined;

  constructor(keeper: KeptFiles, name: string, identity: string, found: HcaDiscovery) {
    const directory = `${CLASS}/${name}`;
    const places = found.withHardware ? ([['device', `${directory}/hw_counters`]] as const) : [];
    this.#keeper = keeper;
    this.#directory = directory;
    this.#mark = new DirectoryMark(keeper.tree.path(directory), { native: keeper.native });
    this.identity = identity;
    this.place = found.place;
    this.#found = found;
    this.#deviceFiles = keeper.group(
      directory,
      places.map(([, path]) => path),
    );
    this.#devicePlan = new CounterPlan(keeper.tree, this.#deviceFiles, places, {});
    this.#factsReader = new FactsReader(keeper.tree, this.#deviceFiles, name, found.place);
    this.#facts = this.#readFacts(found.charDevices);
  }

  /** Port number to memory. */
  get memories(): Map<string, PortMemory> {
    return this.#found.memories;
  }

  /** True when its directory is the same as at the last look, with the same names in it; false when that has to be looked up. */
  isUntouched(): boolean {
    return !this.#mark.renew();
  }

  /** Reads the slow facts anew and looks for counter files that came or went. */
  refreshFacts(charDevices: CharDevices): void {
    this.#deviceFiles.refresh();
    this.#relistDevice();
    for (const port of this.#ports.values()) port.relist();
    this.#facts = this.#readFacts(charDevices);
  }

  /** To be called when its directory changed: what lies below may have been replaced. Slow facts keep their pace. */
  relist(): void {
    if (!this.#keeper.invalidates) this.#deviceFiles.release();
    this.#relistDevice();
    for (const port of this.#ports.values()) port.relist();
  }

  read(nowMs: number): HcaSample {
    const pcie = this.#readPcie(nowMs);
    const isAsleep = pcie?.link.isAsleep === true;
    const ports = this.#told.map(({ reader, facts }) => (isAsleep ? reader.unseen(facts) : reader.read(facts, nowMs)));
    const device = isAsleep ? NOTHING_READ : this.#readDevice(nowMs);
    return this.#sample({ facts: this.#facts, ports, device, pcie, isElsewhere: false });
  }

  /** The device while its files cannot be seen, as when it was moved into a container's network namespace. */
  elsewhere(): HcaSample {
    if (this.#latest?.isElsewhere) return this.#latest;
    const ports = this.#told.map(({ reader, facts }) => reader.unseen(facts));
    return this.#sample({ facts: this.#facts, ports, device: NOTHING_READ, pcie: undefined, isElsewhere: true });
  }

  /** Gives up what is kept open. The device can still be told of, not read. */
  close(): void {
    if (this.place.pciAddress !== undefined) this.#found.functions.forget(this.place.pciAddress);
    this.#deviceFiles.close();
    for (const port of this.#ports.values()) port.close();
  }

  #sample(now: HcaSample): HcaSample {
    if (this.#latest === undefined || !isSame(this.#latest, now)) this.#latest = now;
    return this.#latest;
  }

  #readFacts(charDevices: CharDevices): HcaFacts {
    const facts = this.#factsReader.read(charDevices, (port, netdev) => this.#port(port).facts(netdev));
    for (const [port, reader] of this.#ports) {
      if (facts.ports.has(port)) continue;
      reader.close();
      this.#ports.delete(port);
    }
    this.#told = Array.from(facts.ports, ([port, told]) => ({ reader: this.#port(port), facts: told }));
    return facts;
  }

  #port(port: string): PortReader {
    const reader = this.#ports.get(port) ?? new PortReader(this.#keeper, `${this.#directory}/ports/${port}`, port, this.#found);
    this.#ports.set(port, reader);
    return reader;
  }

  #relistDevice(): void {
    this.#devicePlan.relist();
    this.#deviceAtMs = Number.NEGATIVE_INFINITY;
  }

  #readDevice(nowMs: number): CounterPass {
    if (this.#deviceFiles.hasChanged()) this.#relistDevice();
    if (this.#latest !== undefined && !isDue(this.#deviceAtMs, this.#found.paces.countersMs, nowMs)) return this.#latest.device;
    this.#deviceAtMs = nowMs;
    return this.#devicePlan.read(nowMs);
  }

  #readPcie(nowMs: number): PcieSample | undefined {
    const { kind, pciAddress } = this.place;
    // Virtual and scalable functions report their physical function's link, or nothing.
    if (kind !== 'pf' || pciAddress === undefined) return undefined;
    if (this.#pcie === undefined || nowMs - this.#pcie.readAtMs >= PCIE_EVERY_MS) {
      this.#pcie = { sample: this.#found.functions.readWithLink(pciAddress, nowMs), readAtMs: nowMs };
    }
    return this.#pcie.sample;
  }
}

function isSame(a: HcaSample, b: HcaSample): boolean {
  if (a.facts !== b.facts || a.device !== b.device || a.pcie !== b.pcie || a.isElsewhere !== b.isElsewhere) return false;
  if (a.ports.length !== b.ports.length) return false;
  for (let at = 0; at < a.ports.length; at += 1) if (a.ports[at] !== b.ports[at]) return false;
  return true;
}

/** What discovery knows of a device before its first read. */
export interface HcaDiscovery {
  readonly place: Place;
  readonly charDevices: CharDevices;
  /** For the PCIe side of all devices. */
  readonly functions: PciFunctions;
  readonly withHardware: boolean;
  readonly paces: Paces;
  /** Port number to memory; outlives the device, so that a reset does not make a faulty port look uncabled. */
  readonly memories: Map<string, PortMemory>;
}
