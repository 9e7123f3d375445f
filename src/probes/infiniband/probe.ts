import type { Host } from '../../host/host.ts';
import type { Collection, Problem } from '../../model/collection.ts';
import type { Probe } from '../family.ts';
import { type Pace, Pacer } from '../kit/pace.ts';
import { unlisted } from '../kit/unlisted.ts';
import { CLASS } from './discover.ts';
import type { HcaSample } from './hca.ts';
import { type InfinibandOptions, isExpectedPort, type NameFilter, nameFilter } from './options.ts';
import type { ProblemCode } from './problems.ts';
import { HcaRegistry } from './registry.ts';
import { reportsOf } from './report.ts';

export function createInfinibandProbe(host: Host, options: InfinibandOptions): Probe {
  return new InfinibandProbe(host, options);
}

class InfinibandProbe implements Probe {
  readonly #host: Host;
  readonly #options: InfinibandOptions;
  readonly #filter: NameFilter;
  readonly #registry: HcaRegistry;
  readonly #pacer = new Pacer();

  constructor(host: Host, options: InfinibandOptions) {
    this.#host = host;
    this.#options = options;
    this.#filter = nameFilter(options);
    this.#registry = new HcaRegistry(host, options);
  }

  forget(): void {
    this.#registry.clear();
  }

  close(): void {
    this.forget();
  }

  collect(): Collection {
    const { sys, dev, clock } = this.#host;
    const { names, error } = sys.listing(CLASS);
    if (names === undefined) {
      this.forget();
      return unlisted(CLASS, error);
    }
    const pace = this.#pacer.next(clock.monotonic());
    const vanishedNames = this.#registry.update(names.filter(this.#filter), pace);
    const { samples, problems } = this.#readAll(pace);
    const all = [...samples, ...this.#registry.inOtherNamespace.map((hca) => hca.sampleInOtherNamespace())];
    if (this.#options['hw-counters']) {
      if (areCountersHidden(all)) {
        problems.push(problem('counters-hidden', 'ports have a state, and neither counters nor hw_counters, on every device'));
      } else problems.push(...samples.filter(hasNoCounters).map(withoutCounters));
    }
    const nodes = dev.listing('infiniband');
    if (nodes.error !== undefined && all.some(({ facts }) => facts.charDevices.uverbs.length > 0)) {
      problems.push(problem('nodes-hidden', `listing ${dev.path('infiniband')} fails with ${nodes.error}`));
    }
    const isExpected = (device: string, port: string): boolean => isExpectedPort(this.#options, device, port);
    return {
      reports: reportsOf(all, { charNodes: nodes.names && new Set(nodes.names), isExpected }),
      problems: [
        ...vanishedNames.map(vanished),
        ...problems,
        ...all.flatMap((sample) => [...invalidStates(sample), ...brokenCounters(sample)]),
      ],
      listing: 'complete',
    };
  }

  #readAll(pace: Pace) {
    const { sys } = this.#host;
    const samples: HcaSample[] = [];
    const problems: Problem[] = [];
    for (const hca of this.#registry.present) {
      const { name } = hca;
      const sample = hca.read(pace);
      if (!this.#registry.isSameDevice(hca)) {
        // The device vanished during the read, so its sample is incomplete. A device that is no longer listed was removed: no problem.
        if (this.#registry.remove(hca) && sys.link(`${CLASS}/${name}`) !== undefined) problems.push(vanished(name));
        continue;
      }
      if (sample.ports.some(({ level }) => level.error === 'EHUNG')) {
        problems.push({ ...problem('device-hangs', `an earlier read of /sys/${CLASS}/${name} still hangs`), device: name });
      }
      samples.push(sample);
    }
    return { samples, problems };
  }
}

/** Reports a state text that no known driver prints. Without this problem, the port would silently have no state. */
function invalidStates({ facts: { name }, ports }: HcaSample): Problem[] {
  return ports
    .filter(({ level }) => level.error === 'EBADMSG')
    .map(({ port }) => ({ ...problem('state-unreadable', `the state of port ${port} of ${name} is no state of a port`), device: name }));
}

/** Reports counters that hold what a failed read gives. */
function brokenCounters({ facts: { name }, ports, device }: HcaSample): Problem[] {
  const places = [...ports.map(({ port, counters }) => [`port ${port} of ${name}`, counters] as const), [name, device] as const];
  return places
    .filter(([, { allOnes }]) => allOnes.length > 0)
    .map(([place, { allOnes }]) => ({ ...problem('counter-all-ones', `${allOnes.join(', ')} of ${place}: all ones`), device: name }));
}

/** Software devices without counters are as they should be. */
const hasNoCounters = ({ facts: { location }, ports, device }: HcaSample): boolean =>
  location.pciAddress !== undefined &&
  device.files === 0 &&
  ports.some(({ level }) => level.state !== undefined) &&
  ports.every(({ counters }) => counters.files === 0);

const withoutCounters = ({ facts: { name } }: HcaSample): Problem => ({
  ...problem('no-counters', `no port of ${name} has a counter that the agent knows`),
  device: name,
});

/** PCI vendors whose drivers have counters on every kernel. Other drivers (siw, qedr, mana_ib of some kernels, …) may have none at all. */
const WITH_COUNTERS: ReadonlySet<string | undefined> = new Set(['0x15b3', '0x8086', '0x14e4', '0x1d0f', '0x434e']);

/** The kernel shows the counters of a device only in the network namespace that owns the device. */
function areCountersHidden(samples: readonly HcaSample[]): boolean {
  const ports = samples.flatMap(({ facts, ports }) => ports.map((port) => ({ ...port, location: facts.location })));
  if (ports.some(({ counters }) => counters.files > 0)) return false;
  return ports.some(({ level, facts, location: { pciVendor, pciAddress } }) => {
    // Soft RoCE also has counters on every kernel. It is the only device that has an interface and is not a PCI function.
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
