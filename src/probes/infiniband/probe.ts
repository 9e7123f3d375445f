import { DirectoryListing } from '../../host/directory-listing.ts';
import type { Host } from '../../host/host.ts';
import type { Collection, Problem } from '../../model/collection.ts';
import type { Probe } from '../family.ts';
import { CharDeviceIndex, NO_CHAR_DEVICES } from './char-devices.ts';
import { CharNodes } from './char-nodes.ts';
import { CLASS, isInOtherNamespace, locate } from './discover.ts';
import { Hca, type HcaSample } from './hca.ts';
import { type Keepers, makeKeepers } from './keepers.ts';
import { type InfinibandOptions, isExpectedPort, type NameFilter, nameFilter } from './options.ts';
import { type Paces, pacesOf } from './paces.ts';
import type { PortMemory } from './port-memory.ts';
import type { ProblemCode } from './problems.ts';
import { Reporter } from './report.ts';

export function createInfinibandProbe(host: Host, options: InfinibandOptions): Probe {
  const filter = nameFilter(options);
  if (typeof filter === 'function') return new InfinibandProbe(host, options, filter);
  const invalid = problem('filter-invalid', `"${filter.invalid}" is no regular expression`);
  return { collect: () => ({ reports: [], problems: [invalid], complete: false }) };
}

class InfinibandProbe implements Probe {
  readonly #host: Host;
  readonly #options: InfinibandOptions;
  readonly #filter: NameFilter;
  readonly #paces: Paces;
  #keepers: Keepers | undefined;
  readonly #class: DirectoryListing;
  readonly #charNodes: CharNodes;
  readonly #reporter: Reporter;
  /** In order of their names. */
  #hcas = new Map<string, Hca>();
  /** Devices that a container has taken into its network namespace: not gone, and not to be read. */
  readonly #elsewhere = new Map<string, Hca>();
  /** Device name to port memories. Kept when a device goes, since a reset brings it back; as many as there ever were names. */
  readonly #memories = new Map<string, Map<string, PortMemory>>();
  /** Names that were wanted of the last listing. */
  #wanted: { readonly listed: readonly string[]; readonly names: readonly string[] } | undefined;
  /** The names with which all known devices are in line; undefined: they have to be brought in line again. */
  #settled: readonly string[] | undefined;
  readonly #charDevices: CharDeviceIndex;
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(host: Host, options: InfinibandOptions, filter: NameFilter) {
    this.#host = host;
    this.#options = options;
    this.#filter = filter;
    this.#paces = pacesOf(options);
    this.#class = new DirectoryListing(host.sys, CLASS);
    this.#charNodes = new CharNodes(host.dev);
    this.#charDevices = new CharDeviceIndex(host.sys);
    this.#reporter = new Reporter((device, port) => isExpectedPort(options, device, port));
  }

  collect(): Collection {
    const { shortages } = this.#host.sys;
    try {
      return this.#collect();
    } finally {
      this.#keepers?.files.rest();
      if (this.#host.sys.shortages !== shortages) this.#lookAgain();
    }
  }

  /** What was found while descriptors were short is not believed: all of it is found anew at the next read. */
  #lookAgain(): void {
    this.#keepers?.files.giveWay();
    this.#charDevices.forget();
    this.#sweptAtMs = Number.NEGATIVE_INFINITY;
  }

  close(): void {
    for (const hca of this.#hcas.values()) hca.close();
    this.#keepers?.functions.close();
  }

  #collect(): Collection {
    const listing = this.#class.list(this.#keepers?.files.native);
    if (listing.error !== undefined) {
      for (const hca of this.#hcas.values()) hca.close();
      this.#hcas.clear();
      this.#settled = undefined;
      if (listing.error === 'ENOENT') return { reports: [], problems: [] };
      const unreadable = problem('class-unreadable', `listing /sys/${CLASS} fails with ${listing.error}`);
      return { reports: [], problems: [unreadable], complete: false };
    }
    const nowMs = this.#host.clock.monotonic();
    const problems: Problem[] = [];
    this.#discover(this.#wantedOf(listing.names), nowMs, problems);
    const samples = this.#readAll(nowMs, problems);
    for (const hca of this.#elsewhere.values()) samples.push(hca.elsewhere());
    if (this.#options['hw-counters'] && areCountersHidden(samples)) {
      problems.push(problem('counters-hidden', 'ports have a state, and neither counters nor hw_counters, on every device'));
    }
    return { reports: this.#reporter.reports(samples, this.#charNodes.names(this.#keepers?.files.native)), problems };
  }

  #wantedOf(listed: readonly string[]): readonly string[] {
    if (this.#wanted?.listed !== listed) this.#wanted = { listed, names: listed.filter(this.#filter) };
    return this.#wanted.names;
  }

  #discover(names: readonly string[], nowMs: number, problems: Problem[]): void {
    let touched: Set<Hca> | undefined;
    for (const hca of this.#hcas.values()) if (!hca.isUntouched()) touched = (touched ?? new Set()).add(hca);
    if (names !== this.#settled || touched !== undefined) this.#settle(names, touched, nowMs, problems);
    else if (this.#isSweepDue(nowMs)) this.#sweep(nowMs);
  }

  #isSweepDue(nowMs: number): boolean {
    return nowMs - this.#sweptAtMs >= this.#paces.factsMs;
  }

  /** Brings the known devices in line with the class directory. */
  #settle(names: readonly string[], touched: ReadonlySet<Hca> | undefined, nowMs: number, problems: Problem[]): void {
    const present = new Map<string, string>();
    for (const name of names) {
      const hca = this.#hcas.get(name);
      const isUntouched = hca !== undefined && touched?.has(hca) !== true;
      const identity = isUntouched ? hca.identity : this.#host.sys.identity(`${CLASS}/${name}`);
      if (identity === undefined) problems.push(vanished(name));
      else present.set(name, identity);
      if (hca !== undefined && !isUntouched && identity === hca.identity) hca.relist();
    }
    for (const [name, hca] of this.#hcas) if (present.get(name) !== hca.identity) this.#dismiss(name, hca);
    for (const [name, hca] of this.#elsewhere) {
      if (present.has(name) || !isInOtherNamespace(this.#host.sys, hca.place)) this.#elsewhere.delete(name);
    }
    const added = [...present].filter(([name]) => !this.#hcas.has(name));
    if (added.length > 0) this.#charDevices.forget();
    if (added.length > 0 || this.#isSweepDue(nowMs)) this.#sweep(nowMs);
    if (added.length > 0) this.#add(added);
    this.#settled = this.#hcas.size === names.length && this.#elsewhere.size === 0 ? names : undefined;
  }

  #add(added: readonly (readonly [name: string, identity: string])[]): void {
    this.#keepers ??= makeKeepers(this.#host.sys, this.#options['kept-files']);
    const { files, functions } = this.#keepers;
    const charDevices = this.#charDevices.find(files.native);
    const virtualFunctions = new Map();
    for (const [name, identity] of added) {
      const memories = this.#memories.get(name) ?? new Map<string, PortMemory>();
      this.#memories.set(name, memories);
      const found = {
        place: locate(this.#host.sys, `${CLASS}/${name}`, virtualFunctions),
        charDevices: charDevices.get(name) ?? NO_CHAR_DEVICES,
        functions,
        withHardware: this.#options['hw-counters'],
        paces: this.#paces,
        memories,
      };
      this.#hcas.set(name, new Hca(files, name, identity, found));
    }
    this.#hcas = new Map([...this.#hcas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #dismiss(name: string, hca: Hca): void {
    this.#settled = undefined;
    hca.close();
    this.#hcas.delete(name);
    if (isInOtherNamespace(this.#host.sys, hca.place)) this.#elsewhere.set(name, hca);
  }

  #sweep(nowMs: number): void {
    this.#sweptAtMs = nowMs;
    const charDevices = this.#charDevices.find(this.#keepers?.files.native);
    for (const [name, hca] of this.#hcas) hca.refreshFacts(charDevices.get(name) ?? NO_CHAR_DEVICES);
  }

  #readAll(nowMs: number, problems: Problem[]): HcaSample[] {
    const samples: HcaSample[] = [];
    for (const [name, hca] of this.#hcas) {
      const opened = this.#keepers?.files.opened;
      const sample = hca.read(nowMs);
      // What came from descriptors that were open before was there while it was read.
      if (this.#keepers?.files.opened !== opened && this.#host.sys.identity(`${CLASS}/${name}`) !== hca.identity) {
        // Gone while it was read: half a truth is none.
        this.#dismiss(name, hca);
        if (!this.#elsewhere.has(name)) problems.push(vanished(name));
        continue;
      }
      if (doesHang(sample)) {
        problems.push({ ...problem('device-hangs', `an earlier read of /sys/${CLASS}/${name} still hangs`), device: name });
      }
      samples.push(sample);
    }
    return samples;
  }
}

function doesHang({ ports }: HcaSample): boolean {
  for (const { level } of ports) if (level.error === 'EHUNG') return true;
  return false;
}

/** PCI vendor whose driver (mana_ib) has no counters on many kernels: nothing is hidden there. */
const WITHOUT_COUNTERS = '0x1414';

/** The kernel gives a device's counters only to the network namespace that owns the device. */
function areCountersHidden(samples: readonly HcaSample[]): boolean {
  let isAnyTold = false;
  for (const { facts, ports } of samples) {
    if (facts.place.pciVendor === WITHOUT_COUNTERS) continue;
    for (const { level, counters } of ports) {
      if (counters.files > 0) return false;
      isAnyTold ||= level.state !== undefined;
    }
  }
  return isAnyTold;
}

function problem(code: ProblemCode, message: string): Problem {
  return { code, message };
}

function vanished(name: string): Problem {
  return { ...problem('device-vanished', `/sys/${CLASS}/${name} was listed and then gone`), device: name };
}
