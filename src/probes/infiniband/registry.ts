import type { Host } from '../../host/host.ts';
import { isDue, type Pace } from '../kit/pace.ts';
import { findCharDevices, NO_CHAR_DEVICES } from './char-devices.ts';
import { CLASS, isInOtherNamespace, type Location, locate, type VirtualFunctions } from './discover.ts';
import { Hca } from './hca.ts';
import type { InfinibandOptions } from './options.ts';
import type { PortMemory } from './port.ts';

/** Limit of devices whose port memories are kept. No node has so many functions. */
const MAX_MEMORIES = 4_096;

/** Keeps the list of devices between two reads of the class directory. */
export class HcaRegistry {
  readonly #host: Host;
  readonly #options: InfinibandOptions;
  #present: ReadonlyMap<string, Hca> = new Map();
  /** Devices in the network namespace of a container. They exist, but cannot be read. */
  readonly #inOtherNamespace = new Map<string, Hca>();
  /** Keyed by location, because the name of a device may change. The newest device is last. */
  readonly #memories = new Map<string, Map<string, PortMemory>>();
  #sweptAtMs: number | undefined;

  constructor(host: Host, options: InfinibandOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** Devices that can be read, in the order of the names in the last update. */
  get present(): readonly Hca[] {
    return [...this.#present.values()];
  }

  /** Devices in the network namespace of a container. */
  get inOtherNamespace(): readonly Hca[] {
    return [...this.#inOtherNamespace.values()];
  }

  /** Updates the devices from the names in the class directory. Returns the names that have no device. */
  update(names: readonly string[], pace: Pace): readonly string[] {
    const identities = new Map(names.map((name) => [name, this.#host.sys.identity(`${CLASS}/${name}`)]));
    for (const hca of this.present) if (identities.get(hca.name) !== hca.identity) this.remove(hca);
    for (const [name, { location }] of this.#inOtherNamespace) {
      if (identities.get(name) !== undefined || !isInOtherNamespace(this.#host.sys, location)) this.#inOtherNamespace.delete(name);
    }
    const added = names.filter((name) => identities.get(name) !== undefined && !this.#present.has(name));
    if (added.length > 0 || isDue(this.#sweptAtMs, this.#options['facts-interval'], pace)) {
      this.#sweptAtMs = pace.nowMs;
      this.#sweep(identities);
    }
    return names.filter((name) => identities.get(name) === undefined);
  }

  /** Tells whether the name still belongs to this device. */
  isSameDevice(hca: Hca): boolean {
    return this.#host.sys.identity(hca.directory) === hca.identity;
  }

  /** Removes a device whose name now belongs to another device or to none. Returns false when a container has the device. */
  remove(hca: Hca): boolean {
    this.#host.sys.forget(hca.directory);
    this.#present = new Map([...this.#present].filter(([name]) => name !== hca.name));
    if (!isInOtherNamespace(this.#host.sys, hca.location)) return true;
    this.#inOtherNamespace.set(hca.name, hca);
    return false;
  }

  /** Removes all devices from the list. The next update finds the existing devices again. */
  clear(): void {
    for (const hca of this.#present.values()) this.#host.sys.forget(hca.directory);
    this.#present = new Map();
  }

  /** Creates new devices, and reads the facts of known devices again. */
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
    const memories = this.#memoriesOf([location.pciAddress ?? name, location.auxiliary].join(' '));
    return new Hca(this.#host.sys, { name, identity, location, options: this.#options, memories }, charDevices);
  }

  #memoriesOf(key: string): Map<string, PortMemory> {
    const memories = this.#memories.get(key) ?? new Map<string, PortMemory>();
    this.#memories.delete(key);
    this.#memories.set(key, memories);
    const [oldest] = this.#memories.keys();
    if (this.#memories.size > MAX_MEMORIES && oldest !== undefined) this.#memories.delete(oldest);
    return memories;
  }
}
