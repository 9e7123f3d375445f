import { DirectoryListing } from '../../host/directory-listing.ts';
import type { Host } from '../../host/host.ts';
import type { Collection, Problem } from '../../model/collection.ts';
import type { Probe } from '../family.ts';
import { CharNodes } from './char-nodes.ts';
import { CLASS } from './discover.ts';
import type { HcaSample } from './hca.ts';
import { HcaRoster } from './hca-roster.ts';
import { type InfinibandOptions, isExpectedPort, type NameFilter, nameFilter } from './options.ts';
import type { ProblemCode } from './problems.ts';
import { Reporter } from './report.ts';

export function createInfinibandProbe(host: Host, options: InfinibandOptions): Probe {
  return new InfinibandProbe(host, options);
}

class InfinibandProbe implements Probe {
  readonly #host: Host;
  readonly #areCountersWanted: boolean;
  readonly #filter: NameFilter;
  readonly #class: DirectoryListing;
  readonly #charNodes: CharNodes;
  readonly #roster: HcaRoster;
  readonly #reporter: Reporter;
  /** Names that were wanted of the last listing. */
  #wanted: { readonly listed: readonly string[]; readonly names: readonly string[] } | undefined;

  constructor(host: Host, options: InfinibandOptions) {
    this.#host = host;
    this.#areCountersWanted = options['hw-counters'];
    this.#filter = nameFilter(options);
    this.#class = new DirectoryListing(host.sys, CLASS);
    this.#charNodes = new CharNodes(host.dev);
    this.#roster = new HcaRoster(host, options);
    this.#reporter = new Reporter((device, port) => isExpectedPort(options, device, port));
  }

  collect(): Collection {
    const { shortages } = this.#host.sys;
    try {
      return this.#collect();
    } finally {
      this.#roster.keepers?.files.rest();
      if (this.#host.sys.shortages !== shortages) this.#roster.lookAgain();
    }
  }

  close(): void {
    this.#roster.close();
  }

  #collect(): Collection {
    const listing = this.#class.list(this.#roster.keepers?.files.native);
    if (listing.error !== undefined) {
      this.#roster.clear();
      if (listing.error === 'ENOENT') return { reports: [], problems: [], listing: 'absent' };
      const unreadable = problem('class-unreadable', `listing /sys/${CLASS} fails with ${listing.error}`);
      return { reports: [], problems: [unreadable], listing: 'partial' };
    }
    const nowMs = this.#host.clock.monotonic();
    const problems = this.#roster.bringInLine(this.#wantedOf(listing.names), nowMs).map(vanished);
    const unread = new Set<string>();
    const samples = this.#readAll(nowMs, problems, unread);
    for (const hca of this.#roster.elsewhere) samples.push(hca.elsewhere());
    if (this.#areCountersWanted && areCountersHidden(samples)) {
      problems.push(problem('counters-hidden', 'ports have a state, and neither counters nor hw_counters, on every device'));
    }
    problems.push(...samples.flatMap(statesOfNoKind));
    const reports = this.#reporter.reports(samples, this.#charNodes.names(this.#roster.keepers?.files.native));
    return {
      reports: reports.map((report) => (unread.has(report.device.id) ? { device: report.device } : report)),
      problems,
      listing: 'complete',
    };
  }

  #wantedOf(listed: readonly string[]): readonly string[] {
    if (this.#wanted?.listed !== listed) this.#wanted = { listed, names: listed.filter(this.#filter) };
    return this.#wanted.names;
  }

  /** `unread` gets the names of those of which something could not be opened for want of descriptors. */
  #readAll(nowMs: number, problems: Problem[], unread: Set<string>): HcaSample[] {
    const roster = this.#roster;
    const samples: HcaSample[] = [];
    for (const [name, hca] of roster.present) {
      const opened = roster.keepers?.files.opened;
      const { shortages } = this.#host.sys;
      const sample = hca.read(nowMs);
      if (this.#host.sys.shortages !== shortages) unread.add(name);
      // What came from descriptors that were open before was there while it was read.
      if (roster.keepers?.files.opened !== opened && !roster.isStillThere(name, hca)) {
        // Gone while it was read: half a truth is none. One that is not listed any more was removed, which is no trouble of reading.
        if (roster.dismiss(name, hca) && this.#host.sys.link(`${CLASS}/${name}`) !== undefined) problems.push(vanished(name));
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

/** Text that no driver is known to print says nothing: told, so that the port does not look as if it had nothing to say. */
function statesOfNoKind({ facts, ports }: HcaSample): Problem[] {
  return ports.flatMap(({ port, level: { error } }) =>
    error === 'EBADMSG'
      ? [{ ...problem('state-unreadable', `the state of port ${port} of ${facts.name} is no state of a port`), device: facts.name }]
      : [],
  );
}

function doesHang({ ports }: HcaSample): boolean {
  for (const { level } of ports) if (level.error === 'EHUNG') return true;
  return false;
}

/** PCI vendors whose drivers have counters on every kernel. Of others (siw, qedr, mana_ib of some kernels, …) none need be hidden where there are none. */
const WITH_COUNTERS: ReadonlySet<string | undefined> = new Set(['0x15b3', '0x8086', '0x14e4', '0x1d0f', '0x434e']);

/** The kernel gives a device's counters only to the network namespace that owns the device. */
function areCountersHidden(samples: readonly HcaSample[]): boolean {
  let isAnyTold = false;
  for (const { facts, ports } of samples) {
    const { pciAddress, pciVendor } = facts.place;
    for (const { level, counters, facts: port } of ports) {
      if (counters.files > 0) return false;
      // Soft RoCE has counters everywhere too, and is alone in telling its interface without being a PCI function.
      const hasCounters = WITH_COUNTERS.has(pciVendor) || (pciAddress === undefined && port.netdev !== undefined);
      isAnyTold ||= hasCounters && level.state !== undefined;
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
