import type { Host } from '../../host/host.ts';
import { CharDeviceIndex, NO_CHAR_DEVICES } from './char-devices.ts';
import { CLASS, isInOtherNamespace, locate, type Place } from './discover.ts';
import { GonePorts } from './gone-ports.ts';
import { Hca } from './hca.ts';
import { type Keepers, makeKeepers } from './keepers.ts';
import type { InfinibandOptions } from './options.ts';
import { type Paces, pacesOf } from './paces.ts';

/** The devices that there are, from one look at the class directory to the next. */
export class HcaRoster {
  readonly #host: Host;
  readonly #options: InfinibandOptions;
  readonly #paces: Paces;
  /** Made for the first device. */
  #keepers: Keepers | undefined;
  /** In order of their names. */
  #hcas = new Map<string, Hca>();
  /** Devices that a container has taken into its network namespace: not gone, and not to be read. */
  readonly #elsewhere = new Map<string, Hca>();
  /** By name and place, since a name may come to stand for another device. */
  readonly #gonePorts = new GonePorts();
  /** The names with which all known devices are in line; undefined: they have to be brought in line again. */
  #settled: readonly string[] | undefined;
  readonly #charDevices: CharDeviceIndex;
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(host: Host, options: InfinibandOptions) {
    this.#host = host;
    this.#options = options;
    this.#paces = pacesOf(options);
    this.#charDevices = new CharDeviceIndex(host.sys);
  }

  /** What keeps their files open; undefined before the first device. */
  get keepers(): Keepers | undefined {
    return this.#keepers;
  }

  /** Those that can be read, by name. */
  get present(): ReadonlyMap<string, Hca> {
    return this.#hcas;
  }

  /** Those that are there and cannot be seen. */
  get elsewhere(): Iterable<Hca> {
    return this.#elsewhere.values();
  }

  /** Brings the devices in line with the names that are wanted of the class directory. Gives those that are listed and gone. */
  bringInLine(names: readonly string[], nowMs: number): readonly string[] {
    let touched: Set<Hca> | undefined;
    for (const hca of this.#hcas.values()) if (!hca.isUntouched()) touched = (touched ?? new Set()).add(hca);
    if (names !== this.#settled || touched !== undefined) return this.#settle(names, touched, nowMs);
    if (this.#isSweepDue(nowMs)) this.#sweep(nowMs);
    return NO_NAMES;
  }

  /** Whether the device is still the one that has the name. */
  isStillThere(name: string, hca: Hca): boolean {
    return this.#host.sys.identity(`${CLASS}/${name}`) === hca.identity;
  }

  /** The name is another's or nobody's now. False when a container has taken the device. */
  dismiss(name: string, hca: Hca): boolean {
    this.#settled = undefined;
    this.#close(name, hca);
    this.#hcas.delete(name);
    if (!isInOtherNamespace(this.#host.sys, hca.place)) return true;
    this.#elsewhere.set(name, hca);
    return false;
  }

  /** What was found while descriptors were short is not believed: all of it is found anew at the next read. */
  lookAgain(): void {
    this.#keepers?.files.giveWay();
    this.#charDevices.forget();
    this.#sweptAtMs = Number.NEGATIVE_INFINITY;
  }

  /** There is none to be read any more. */
  clear(): void {
    for (const [name, hca] of this.#hcas) this.#close(name, hca);
    this.#hcas.clear();
    this.#settled = undefined;
  }

  close(): void {
    this.clear();
    this.#keepers?.functions.close();
  }

  #settle(names: readonly string[], touched: ReadonlySet<Hca> | undefined, nowMs: number): readonly string[] {
    const { present, gone } = this.#identify(names, touched);
    for (const [name, hca] of this.#hcas) if (present.get(name) !== hca.identity) this.dismiss(name, hca);
    for (const [name, hca] of this.#elsewhere) {
      if (present.has(name) || !isInOtherNamespace(this.#host.sys, hca.place)) this.#elsewhere.delete(name);
    }
    const added = [...present].filter(([name]) => !this.#hcas.has(name));
    if (added.length > 0) this.#charDevices.forget();
    if (added.length > 0 || this.#isSweepDue(nowMs)) this.#sweep(nowMs);
    if (added.length > 0) this.#add(added);
    this.#settled = this.#hcas.size === names.length && this.#elsewhere.size === 0 ? names : undefined;
    return gone;
  }

  /** The identity of each name, and the names without one. Devices that were touched and are the same look anew at their files. */
  #identify(names: readonly string[], touched: ReadonlySet<Hca> | undefined) {
    const present = new Map<string, string>();
    const gone: string[] = [];
    for (const name of names) {
      const hca = this.#hcas.get(name);
      const isUntouched = hca !== undefined && touched?.has(hca) !== true;
      const identity = isUntouched ? hca.identity : this.#host.sys.identity(`${CLASS}/${name}`);
      if (identity === undefined) gone.push(name);
      else present.set(name, identity);
      if (hca !== undefined && !isUntouched && identity === hca.identity) hca.relist();
    }
    return { present, gone };
  }

  #add(added: readonly (readonly [name: string, identity: string])[]): void {
    this.#keepers ??= makeKeepers(this.#host.sys, this.#options['kept-files']);
    const { files, functions } = this.#keepers;
    const charDevices = this.#charDevices.find(files.native);
    const virtualFunctions = new Map();
    for (const [name, identity] of added) {
      const place = locate(this.#host.sys, `${CLASS}/${name}`, virtualFunctions);
      const found = {
        place,
        charDevices: charDevices.get(name) ?? NO_CHAR_DEVICES,
        functions,
        withHardware: this.#options['hw-counters'],
        paces: this.#paces,
        memories: this.#gonePorts.take(nameAndPlace(name, place)),
      };
      this.#hcas.set(name, new Hca(files, name, identity, found));
    }
    this.#hcas = new Map([...this.#hcas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #close(name: string, hca: Hca): void {
    hca.close();
    this.#gonePorts.keep(nameAndPlace(name, hca.place), hca.memories);
  }

  #isSweepDue(nowMs: number): boolean {
    return nowMs - this.#sweptAtMs >= this.#paces.factsMs;
  }

  #sweep(nowMs: number): void {
    this.#sweptAtMs = nowMs;
    const charDevices = this.#charDevices.find(this.#keepers?.files.native);
    for (const [name, hca] of this.#hcas) hca.refreshFacts(charDevices.get(name) ?? NO_CHAR_DEVICES);
  }
}

const nameAndPlace = (name: string, { pciAddress, auxiliary }: Place): string => [name, pciAddress, auxiliary].join(' ');

const NO_NAMES: readonly string[] = [];
