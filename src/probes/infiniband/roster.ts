import type { Host } from '../../host/host.ts';
import { findCharDevices, NO_CHAR_DEVICES } from './char-devices.ts';
import { CLASS, isInOtherNamespace, type Location, locate, type VirtualFunctions } from './discover.ts';
import { Hca } from './hca.ts';
import type { InfinibandOptions } from './options.ts';
import type { PortMemory } from './port.ts';

/** Devices whose ports are remembered: more than the functions that any node has. */
const MOST_REMEMBERED = 4_096;

/** The devices that there are, from one look at the class directory to the next. */
export class Roster {
  readonly #host: Host;
  readonly #options: InfinibandOptions;
  #present: ReadonlyMap<string, Hca> = new Map();
  /** Devices that a container has taken into its network namespace: not gone, and not to be read. */
  readonly #elsewhere = new Map<string, Hca>();
  /** By name and location, since a name may come to stand for another device. The device that came last is the last. */
  readonly #memories = new Map<string, Map<string, PortMemory>>();
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(host: Host, options: InfinibandOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** Those that can be read, in the order of the last names. */
  get present(): readonly Hca[] {
    return [...this.#present.values()];
  }

  /** Those that are there and cannot be seen. */
  get elsewhere(): readonly Hca[] {
    return [...this.#elsewhere.values()];
  }

  /** Brings the devices in line with names of the class directory. Gives those of no device. */
  update(names: readonly string[], nowMs: number): readonly string[] {
    const identities = new Map(names.map((name) => [name, this.#host.sys.identity(`${CLASS}/${name}`)]));
    for (const hca of this.present) if (identities.get(hca.name) !== hca.identity) this.dismiss(hca);
    for (const [name, { location }] of this.#elsewhere) {
      if (identities.get(name) !== undefined || !isInOtherNamespace(this.#host.sys, location)) this.#elsewhere.delete(name);
    }
    const added = names.filter((name) => identities.get(name) !== undefined && !this.#present.has(name));
    if (added.length > 0 || nowMs - this.#sweptAtMs >= this.#options['facts-interval']) {
      this.#sweptAtMs = nowMs;
      this.#sweep(identities);
    }
    return names.filter((name) => identities.get(name) === undefined);
  }

  /** Whether the device is still the one that has its name. */
  isStillThere(hca: Hca): boolean {
    return this.#host.sys.identity(hca.directory) === hca.identity;
  }

  /** The name is another's or nobody's now. False when a container has taken the device. */
  dismiss(hca: Hca): boolean {
    this.#host.sys.forget(hca.directory);
    this.#present = new Map([...this.#present].filter(([name]) => name !== hca.name));
    if (!isInOtherNamespace(this.#host.sys, hca.location)) return true;
    this.#elsewhere.set(hca.name, hca);
    return false;
  }

  /** Forgets the devices, and finds anew those that there are at the next look. */
  clear(): void {
    for (const hca of this.#present.values()) this.#host.sys.forget(hca.directory);
    this.#present = new Map();
  }

  /** Makes the devices that came, and reads anew what changes rarely of the others. */
  #sweep(identities: ReadonlyMap<string, string | undefined>): void {
    const { sys } = this.#host;
    const charDevices = findCharDevices(sys);
    const virtualFunctions: VirtualFunctions = new Map();
    const present = new Map<string, Hca>();
    for (const [name, identity] of identities) {
      if (identity === undefined) continue;
      const known = this.#present.get(name);
      const own = charDevices.get(name) ?? NO_CHAR_DEVICES;
      known?.readFacts(own);
      present.set(name, known ?? this.#make(name, identity, locate(sys, `${CLASS}/${name}`, virtualFunctions), own));
    }
    this.#present = present;
  }

  #make(name: string, identity: string, location: Location, charDevices: typeof NO_CHAR_DEVICES): Hca {
    const memories = this.#memoriesOf([name, location.pciAddress, location.auxiliary].join(' '));
    return new Hca(this.#host.sys, { name, identity, location, options: this.#options, memories }, charDevices);
  }

  #memoriesOf(key: string): Map<string, PortMemory> {
    const memories = this.#memories.get(key) ?? new Map<string, PortMemory>();
    this.#memories.delete(key);
    this.#memories.set(key, memories);
    const [oldest] = this.#memories.keys();
    if (this.#memories.size > MOST_REMEMBERED && oldest !== undefined) this.#memories.delete(oldest);
    return memories;
  }
}
