import { isDeepStrictEqual } from 'node:util';
import type { Host } from '../../host/host.ts';
import type { Collection, DeviceRead, DeviceReport, Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import type { Probe } from '../family.ts';
import { type CardUse, DrmUsers } from '../kit/drm/users.ts';
import { RowLog } from '../kit/log-rows.ts';
import { IntervalCache, type Pace, Pacer, reconciled } from '../kit/pace.ts';
import { Bus } from '../kit/pcie/bus.ts';
import { pcieLogConditions, pcieLogRows } from '../kit/pcie/log.ts';
import { Card, type CardFacts, type CardReadResult } from './card.ts';
import { conditions, findingsOf } from './conditions.ts';
import type { IntelgpuOptions } from './declaration.ts';
import { bus, type CardPlace, findPlaces, listNames, MODELS, type Names, type Places } from './discover.ts';
import { logRows } from './log-rows.ts';
import { metrics } from './metrics.ts';
import { parseDrmClient } from './processes.ts';

/** One card in one collection. `sample` is absent for a virtual function without a driver of Intel. */
interface CardRead {
  readonly card: Card;
  readonly sample?: CardReadResult;
}

export class IntelgpuProbe implements Probe {
  readonly #host: Host;
  readonly #options: IntelgpuOptions;
  readonly #processes: DrmUsers;
  readonly #log: RowLog;
  readonly #bus: Bus;
  readonly #pacer = new Pacer();
  #cards = new Map<string, Card>();
  readonly #places = new IntervalCache<{ readonly places: Places; readonly key: string }>();

  constructor(host: Host, options: IntelgpuOptions) {
    this.#host = host;
    this.#options = options;
    this.#processes = new DrmUsers(host, {
      parse: parseDrmClient,
      pace: { most: options['processes-per-refresh'], everyMs: 0 },
      needsHost: true,
    });
    this.#bus = new Bus(host, { family: 'intelgpu', hardware: bus, pcie: 'link' });
    this.#log = new RowLog(host, [...logRows, ...pcieLogRows], [...Object.values(conditions), ...pcieLogConditions]);
  }

  collect(): Collection {
    return this.#log.withLogs(this.#bus.added(this.#collect(), this.#log));
  }

  watch(wake: () => void): () => void {
    return this.#log.watch(wake);
  }

  close(): void {
    this.forget();
    this.#log.close();
  }

  forget(): void {
    for (const card of this.#cards.values()) card.close();
    this.#cards.clear();
    this.#places.forget();
  }

  #collect(): Collection {
    const { sys, clock } = this.#host;
    const pace = this.#pacer.next(clock.monotonic());
    const names = listNames(sys);
    if (names.error !== undefined || names.isAbsent) {
      this.forget();
      if (names.error === undefined) return { reports: [], problems: [], listing: 'absent' };
      return { reports: [], problems: [{ code: 'class-unreadable', message: names.error }], listing: 'partial' };
    }
    const { problems, isComplete } = this.#findPlaces(names, pace);
    const listing = isComplete ? 'complete' : 'partial';
    const reads = [...this.#cards.values()].map((card): CardRead => {
      const isOthers = card.place.parent !== undefined && !hasDriver(card.place);
      return isOthers ? { card } : { card, sample: card.read(pace) };
    });
    const uses = this.#useOf(reads, pace);
    const reports = reads.map((read) => this.#report(read, reads, uses.get(read.card.place.address)));
    const { hidden } = this.#processes;
    return {
      reports,
      problems: [
        ...problems,
        ...reads.flatMap(({ card }) => card.problems),
        ...clientProblems(uses),
        ...(hidden !== undefined && uses.size > 0 ? [{ code: 'processes-hidden', message: hidden }] : []),
      ],
      listing,
    };
  }

  #findPlaces(names: Names, pace: Pace): Places {
    const key = [...names.nodes, ...names.bound.map(({ driver, address }) => `${driver}/${address}`)].join(' ');
    const read = () => ({ key, places: this.#readPlaces(names) });
    return this.#places.of(pace, this.#options['facts-interval'], read, (kept) => kept.key === key).places;
  }

  #readPlaces(names: Names): Places {
    const places = findPlaces(this.#host.sys, names);
    this.#cards = reconciled(
      this.#cards,
      places.cards,
      ({ address }) => address,
      (place) => new Card(this.#host, this.#options, place),
      (card, place) => isDeepStrictEqual(place, card.place),
    );
    return places;
  }

  /** Use of each awake card, keyed by address. A read of the clients would wake a sleeping card. */
  #useOf(reads: readonly CardRead[], pace: Pace): ReadonlyMap<string, CardUse | undefined> {
    const used = reads.flatMap(({ card, sample }) => {
      const { address, nodes } = card.place;
      return sample?.state === 'awake' && nodes.length > 0 ? [{ card: address, address, nodes, engines: card.facts.engines }] : [];
    });
    if (used.length === 0) return new Map();
    const uses = this.#processes.read(used, pace);
    return new Map(used.map(({ address }, n) => [address, uses[n]]));
  }

  #report({ card, sample }: CardRead, reads: readonly CardRead[], use: CardUse | undefined): DeviceReport {
    const { place, facts } = card;
    const parent = reads.find((other) => other.card.place.address === place.parent);
    const device = deviceOf(place, facts, parent?.card.facts);
    const read = this.#read({ card, ...(sample !== undefined && { sample }) }, parent, use);
    return { device, ...(read !== undefined && { read }) };
  }

  #read({ card, sample }: CardRead, parent: CardRead | undefined, use: CardUse | undefined): DeviceRead | undefined {
    const { place, facts } = card;
    const above = parent?.sample;
    const ofParent = (above?.state === 'awake' ? above.vfProfiles.get(place.vfIndex ?? -1) : undefined) ?? [];
    const shared = above === undefined ? [] : findingsOf(above).filter(isOfAllFunctions);
    if (sample === undefined) {
      // Nothing but the card itself tells about a function that another driver has.
      return above === undefined || above.state === 'hung' ? undefined : { readings: ofParent, findings: shared };
    }
    switch (sample.state) {
      case 'hung':
        return undefined;
      case 'asleep':
        return { readings: [...ASLEEP, ...sharesOf(sample, facts, {})], findings: [...findingsOf(sample), ...shared] };
      case 'gone':
        return { readings: [], findings: findingsOf(sample) };
      case 'awake': {
        const isTold = use !== undefined && use.hung === undefined;
        return {
          readings: [...sample.readings, ...ofParent, ...sharesOf(sample, facts, use?.engines)],
          findings: [...findingsOf(sample), ...shared],
          ...(isTold && { processes: use.processes }),
        };
      }
    }
  }
}

/** Readings of a sleeping card. */
const ASLEEP: readonly Reading[] = [{ metric: metrics.asleep.name, value: 1 }];

/** Use of the engines. Those of a card that slept or was idle since the last read did nothing. `told`: by the processes. */
function sharesOf({ isIdle }: { readonly isIdle: boolean }, { engines }: CardFacts, told: CardUse['engines'] = {}): readonly Reading[] {
  const shares = isIdle ? engines.map((engine) => [engine, 0] as const) : Object.entries(told);
  return shares.map(([engine, value]) => ({ metric: metrics.utilization.name, labels: { engine }, value }));
}

const hasDriver = ({ driver }: CardPlace): boolean => driver === 'i915' || driver === 'xe';

/** Faults of a card that take all its functions out of service. */
const isOfAllFunctions = ({ type }: Finding): boolean => type === conditions.Survivability.type;

function clientProblems(uses: ReadonlyMap<string, CardUse | undefined>): readonly Problem[] {
  return [...uses].flatMap(([device, use]) =>
    use?.hung === undefined ? [] : [{ code: 'clients-hang', message: `an earlier read of /proc/${use.hung} still hangs`, device }],
  );
}

/** `parent`: facts of the card that a virtual function belongs to. */
function deviceOf(place: CardPlace, facts: CardFacts, parent?: CardFacts): Device {
  const model = MODELS[facts.pciDevice ?? ''] ?? MODELS[parent?.pciDevice ?? ''];
  const numaNode = facts.numaNode ?? parent?.numaNode;
  return defined({
    family: 'intelgpu',
    id: place.address,
    kind: place.parent === undefined ? 'gpu' : 'vf',
    aliases: [],
    pciAddress: place.address,
    vendor: 'Intel',
    characterDevices: place.nodes.map((node) => `/dev/dri/${node}`),
    driver: place.driver,
    ...(place.parent !== undefined && { parent: place.parent, physicalFunction: place.parent }),
    vfIndex: place.vfIndex,
    model,
    numaNode,
    pciVendor: facts.pciVendor,
    pciDevice: facts.pciDevice,
    pciPath: facts.pciPath,
    direct: facts.direct,
  });
}
