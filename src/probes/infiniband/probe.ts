import type { Host } from '../../host/host.ts';
import type { Collection, Problem } from '../../model/collection.ts';
import type { Probe } from '../family.ts';
import { charNodes } from './char-devices.ts';
import { CLASS } from './discover.ts';
import type { HcaSample } from './hca.ts';
import { type InfinibandOptions, isExpectedPort, type NameFilter, nameFilter } from './options.ts';
import type { ProblemCode } from './problems.ts';
import { reportsOf } from './report.ts';
import { Roster } from './roster.ts';

export function createInfinibandProbe(host: Host, options: InfinibandOptions): Probe {
  return new InfinibandProbe(host, options);
}

class InfinibandProbe implements Probe {
  readonly #host: Host;
  readonly #options: InfinibandOptions;
  readonly #filter: NameFilter;
  readonly #roster: Roster;

  constructor(host: Host, options: InfinibandOptions) {
    this.#host = host;
    this.#options = options;
    this.#filter = nameFilter(options);
    this.#roster = new Roster(host, options);
  }

  collect(): Collection {
    const { sys } = this.#host;
    const { shortages } = sys;
    const collection = this.#collect();
    // What was found while descriptors were short is not believed.
    if (sys.shortages !== shortages) this.#roster.clear();
    return collection;
  }

  close(): void {
    this.#roster.clear();
  }

  #collect(): Collection {
    const { sys, dev, clock } = this.#host;
    const { names, error } = sys.listing(CLASS);
    if (names === undefined) {
      this.#roster.clear();
      if (error === 'ENOENT') return { reports: [], problems: [], listing: 'absent' };
      return { reports: [], problems: [problem('class-unreadable', `listing /sys/${CLASS} fails with ${error}`)], listing: 'partial' };
    }
    const nowMs = clock.monotonic();
    const gone = this.#roster.update(names.filter(this.#filter), nowMs);
    const { samples, problems, unread } = this.#readAll(nowMs);
    const all = [...samples, ...this.#roster.elsewhere.map((hca) => hca.elsewhere())];
    if (this.#options['hw-counters'] && areCountersHidden(all)) {
      problems.push(problem('counters-hidden', 'ports have a state, and neither counters nor hw_counters, on every device'));
    }
    const isExpected = (device: string, port: string): boolean => isExpectedPort(this.#options, device, port);
    const reports = reportsOf(all, { charNodes: charNodes(dev), isExpected });
    return {
      reports: reports.map((report) => (unread.has(report.device.id) ? { device: report.device } : report)),
      problems: [...gone.map(vanished), ...problems, ...all.flatMap(statesOfNoKind)],
      listing: 'complete',
    };
  }

  /** `unread`: names of those of which something could not be opened for want of descriptors. */
  #readAll(nowMs: number) {
    const { sys } = this.#host;
    const samples: HcaSample[] = [];
    const problems: Problem[] = [];
    const unread = new Set<string>();
    for (const hca of this.#roster.present) {
      const { name } = hca;
      const { shortages } = sys;
      const sample = hca.read(nowMs);
      if (sys.shortages !== shortages) unread.add(name);
      if (!this.#roster.isStillThere(hca)) {
        // Gone while it was read: half a truth is none. One that is not listed any more was removed, which is no trouble of reading.
        if (this.#roster.dismiss(hca) && sys.link(`${CLASS}/${name}`) !== undefined) problems.push(vanished(name));
        continue;
      }
      if (sample.ports.some(({ level }) => level.error === 'EHUNG')) {
        problems.push({ ...problem('device-hangs', `an earlier read of /sys/${CLASS}/${name} still hangs`), device: name });
      }
      samples.push(sample);
    }
    return { samples, problems, unread };
  }
}

/** Text that no driver is known to print says nothing: told, so that the port does not look as if it had nothing to say. */
function statesOfNoKind({ facts: { name }, ports }: HcaSample): Problem[] {
  return ports
    .filter(({ level }) => level.error === 'EBADMSG')
    .map(({ port }) => ({ ...problem('state-unreadable', `the state of port ${port} of ${name} is no state of a port`), device: name }));
}

/** PCI vendors whose drivers have counters on every kernel. Of others (siw, qedr, mana_ib of some kernels, …) none need be hidden where there are none. */
const WITH_COUNTERS: ReadonlySet<string | undefined> = new Set(['0x15b3', '0x8086', '0x14e4', '0x1d0f', '0x434e']);

/** The kernel gives a device's counters only to the network namespace that owns the device. */
function areCountersHidden(samples: readonly HcaSample[]): boolean {
  const ports = samples.flatMap(({ facts, ports }) => ports.map((port) => ({ ...port, location: facts.location })));
  if (ports.some(({ counters }) => counters.files > 0)) return false;
  return ports.some(({ level, facts, location: { pciVendor, pciAddress } }) => {
    // Soft RoCE has counters everywhere too, and is alone in telling its interface without being a PCI function.
    const hasCounters = WITH_COUNTERS.has(pciVendor) || (pciAddress === undefined && facts.netdev !== undefined);
    return hasCounters && level.state !== undefined;
  });
}

function problem(code: ProblemCode, message: string): Problem {
  return { code, message };
}

function vanished(name: string): Problem {
  return { ...problem('device-vanished', `/sys/${CLASS}/${name} was listed and then gone`), device: name };
}
