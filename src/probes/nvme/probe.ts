import type { Host } from '../../host/host.ts';
import type { Collection, DeviceReport, Problem } from '../../model/collection.ts';
import type { Probe } from '../family.ts';
import { unlisted } from '../kit/device-files.ts';
import { FallbackNames, LastIdentities } from '../kit/identities.ts';
import { RowLog } from '../kit/log-rows.ts';
import { IntervalCache, type Pace, Pacer, reconciled } from '../kit/pace.ts';
import { Bus } from '../kit/pcie/bus.ts';
import { pcieLogConditions, pcieLogRows } from '../kit/pcie/log.ts';
import { inheritedFindings } from './conditions.ts';
import { Controller, type ControllerSample } from './controller.ts';
import { logConditions, logRows, type NvmeOptions } from './declaration.ts';
import { controllerDevice, controllerIdentity, type NamespaceDevice, namesOf, namespaceDevice } from './devices.ts';
import {
  bus,
  CLASS,
  type ControllerPlace,
  findLayout,
  type Layout,
  layoutKey,
  type NamespacePlace,
  PassedThrough,
  passedThrough,
  VFIO,
} from './discover.ts';
import { Namespace } from './namespace.ts';
import { SmartReader } from './smart-reader.ts';

export class NvmeProbe implements Probe {
  readonly #host: Host;
  readonly #options: NvmeOptions;
  readonly #smart: SmartReader;
  readonly #layout = new IntervalCache<{ readonly layout: Layout; readonly key: string }>();
  /** Keyed by name and identity. */
  #controllers = new Map<string, Controller>();
  #namespaces = new Map<string, Namespace>();
  /** What drives told of themselves before a virtual machine got them. */
  readonly #identities: LastIdentities;
  readonly #names: FallbackNames;
  readonly #pacer = new Pacer();
  readonly #log: RowLog;
  readonly #bus: Bus;
  #passed: { readonly drives: readonly PassedThrough[]; readonly key: string } | undefined;

  constructor(host: Host, options: NvmeOptions, smart: SmartReader = new SmartReader(host, options)) {
    this.#host = host;
    this.#options = options;
    this.#smart = smart;
    this.#identities = new LastIdentities(host.known);
    this.#names = new FallbackNames(host.known);
    this.#bus = new Bus(host, { family: 'nvme', hardware: bus, servesUserSpace: true, pcie: 'link' });
    this.#log = new RowLog(host, [...logRows, ...pcieLogRows], [...Object.values(logConditions), ...pcieLogConditions]);
  }

  watch(wake: () => void): () => void {
    return this.#log.watch(wake);
  }

  close(): void {
    this.forget();
    this.#log.close();
  }

  forget(): void {
    for (const each of [...this.#controllers.values(), ...this.#namespaces.values(), ...(this.#passed?.drives ?? [])]) each.close();
    this.#controllers.clear();
    this.#namespaces.clear();
    this.#passed = undefined;
    this.#layout.forget();
  }

  collect(): Collection {
    return this.#log.withLogs(this.#bus.added(this.#collect(), this.#log));
  }

  #collect(): Collection {
    const { sys, clock } = this.#host;
    const pace = this.#pacer.next(clock.monotonic());
    const { names, error } = sys.listing(CLASS);
    if (names === undefined && error !== 'ENOENT') {
      this.forget();
      return unlisted(CLASS, error);
    }
    const passed = this.#passedThrough().map((drive) => drive.report(pace));
    if (names === undefined) return { reports: passed, problems: [], listing: passed.length === 0 ? 'absent' : 'complete' };
    const layout = this.#findLayout(names, pace);
    const controllers = new Map([...this.#controllers.values()].map((controller) => [controller, controller.read(pace)]));
    for (const { place, facts } of controllers.keys()) this.#identities.of(place.id, controllerIdentity(facts) ?? undefined);
    const disks = this.#namespaceReports(pace, controllers);
    return {
      reports: [
        ...[...controllers].map(([controller, sample]) => controllerReport(controller, sample, layout.namespaces)),
        ...disks.reports,
        ...passed,
      ],
      problems: [...layout.problems, ...[...controllers.keys()].flatMap(({ problems }) => problems), ...disks.problems],
      listing: layout.isComplete && disks.areAllNamed ? 'complete' : 'partial',
    };
  }

  #findLayout(names: readonly string[], pace: Pace): Layout {
    const { sys } = this.#host;
    const key = layoutKey(sys, names);
    const read = () => ({ key, layout: this.#readLayout(names) });
    return this.#layout.of(pace, this.#options['facts-interval'], read, (kept) => kept.key === key).layout;
  }

  #readLayout(names: readonly string[]): Layout {
    const { sys } = this.#host;
    const layout = findLayout(sys, names);
    this.#controllers = reconciled(this.#controllers, layout.controllers, keyOfController, (place) => {
      return new Controller(this.#host, this.#options, this.#smart, place);
    });
    this.#namespaces = reconciled(this.#namespaces, layout.namespaces, keyOfNamespace, (place) => new Namespace(sys, this.#options, place));
    return layout;
  }

  #passedThrough(): readonly PassedThrough[] {
    const { sys } = this.#host;
    const key = sys.list(VFIO).join(' ');
    if (this.#passed?.key === key) return this.#passed.drives;
    for (const drive of this.#passed?.drives ?? []) drive.close();
    this.#passed = { drives: passedThrough(sys).map((address) => new PassedThrough(sys, address, this.#identities)), key };
    return this.#passed.drives;
  }

  #namespaceReports(pace: Pace, controllers: ReadonlyMap<Controller, ControllerSample>) {
    const read = [...this.#namespaces.values()].map((namespace) => {
      const own = namespace.place.paths.flatMap(({ controller }) => this.#controllers.get(keyOfController(controller)) ?? []);
      const ways = own.map((controller) => controllers.get(controller) as ControllerSample);
      const states = ways.map(({ state }) => state);
      return { namespace, controllers: own, ways, states, sample: namespace.read(pace, states) };
    });
    const known = read.flatMap((one) => {
      const { isNamed, place, facts } = one.namespace;
      return isNamed ? [{ ...one, place, facts }] : [];
    });
    const repeated = repeatedIds(known);
    const problems: Problem[] = [...repeated].map((wwid) => ({
      code: 'same-name-twice',
      message: `several namespaces have the id ${wwid}`,
    }));
    for (const { namespace } of read) if (!namespace.isNamed) problems.push(...namespace.problems);
    const names = this.#names.of(known.map(namesOf));
    const reports = known.map((each, at): DeviceReport => {
      const { namespace, facts, sample, ways } = each;
      const device = namespaceDevice(each, names[at] as string, !repeated.has(facts.wwid ?? ''));
      problems.push(...namespace.problems.map((problem) => ({ ...problem, device: device.id })));
      if (sample.isHung || (ways.length > 0 && ways.every(({ isHung }) => isHung))) return { device };
      const findings = [...sample.findings, ...inheritedFindings(ways)];
      return { device, read: { readings: sample.readings, findings } };
    });
    return { reports, problems, areAllNamed: known.length === read.length };
  }
}

const keyOfController = ({ name, identity, id }: ControllerPlace): string => `${name} ${identity} ${id}`;
const keyOfNamespace = ({ directory, paths }: NamespacePlace): string =>
  `${directory} ${paths.map(({ controller }) => keyOfController(controller)).join(' ')}`;

function repeatedIds(known: readonly NamespaceDevice[]): ReadonlySet<string> {
  const ids = known.flatMap(({ facts: { wwid } }) => (wwid === undefined ? [] : [wwid]));
  return new Set(ids.filter((id, at) => ids.indexOf(id) !== at));
}

function controllerReport(controller: Controller, sample: ControllerSample, namespaces: readonly NamespacePlace[]): DeviceReport {
  const device = controllerDevice(controller, namespaces);
  return sample.isHung ? { device } : { device, read: { readings: sample.readings, findings: sample.findings } };
}
