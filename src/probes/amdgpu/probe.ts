import { isDeepStrictEqual } from 'node:util';
import type { Host } from '../../host/host.ts';
import { PciDatabase } from '../../host/pci/pci-names.ts';
import type { Collection, DeviceReport, Problem } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { ConditionSpec, Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import type { Probe } from '../family.ts';
import { unlisted } from '../kit/device-files.ts';
import { CLASS } from '../kit/drm/cards.ts';
import { declaredFinding } from '../kit/finding.ts';
import { LastIdentities } from '../kit/identities.ts';
import { RowLog } from '../kit/log-rows.ts';
import { IntervalCache, type Pace, Pacer, reconciled } from '../kit/pace.ts';
import { Bus } from '../kit/pcie/bus.ts';
import { pcieConditions } from '../kit/pcie/health.ts';
import { pcieLogConditions, pcieLogRows } from '../kit/pcie/log.ts';
import { ReadingSet } from '../kit/reading-set.ts';
import { parseCount } from '../kit/text.ts';
import { ATI, Card, type CardReadResult } from './card.ts';
import { conditions, findingsOf, type LinkedFatal, missingRasFindings } from './conditions.ts';
import {
  type AmdgpuOptions,
  bus,
  findPlaces,
  handlesErrors,
  isUnread,
  type KfdNode,
  type Places,
  readTopology,
  renderMinorOf,
  type Topology,
  topologyGeneration,
} from './discover.ts';
import { FATAL_ROW, logConditions, logRows } from './log-rows.ts';
import { metrics } from './metrics.ts';
import { cardDevice, expectedPartitions, type Partition, type PartitionedCard, partitionDevice, partitionedCards } from './partitions.ts';
import { type GpuUse, ProcessReader } from './processes.ts';
import { addPartition } from './readings.ts';

/** One card in one collection. */
interface CardRead {
  readonly card: Card;
  readonly seat: PartitionedCard;
  readonly sample: CardReadResult;
}

export class AmdgpuProbe implements Probe {
  readonly #host: Host;
  readonly #options: AmdgpuOptions;
  readonly #identities: LastIdentities;
  readonly #processes: ProcessReader;
  readonly #database: PciDatabase;
  readonly #log: RowLog;
  readonly #bus: Bus;
  readonly #pacer = new Pacer();
  #cards = new Map<string, Card>();
  readonly #places = new IntervalCache<{ readonly places: Places; readonly key: string }>();
  readonly #topology = new IntervalCache<{ readonly topology: Topology; readonly generation: string | undefined }>();

  constructor(host: Host, options: AmdgpuOptions) {
    this.#host = host;
    this.#options = options;
    this.#identities = new LastIdentities(host.known);
    this.#bus = new Bus(host, { family: 'amdgpu', hardware: bus, pcie: 'link' });
    this.#log = new RowLog(host, [...logRows, ...pcieLogRows], [...Object.values(logConditions), ...pcieLogConditions]);
    this.#database = new PciDatabase(host, ATI.slice(2));
    this.#processes = new ProcessReader(host, options['processes-per-search']);
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
    this.#topology.forget();
  }

  collect(): Collection {
    return this.#log.withLogs(this.#bus.added(this.#collect(), this.#log));
  }

  #collect(): Collection {
    const { sys, clock } = this.#host;
    const pace = this.#pacer.next(clock.monotonic());
    const { names, error } = sys.listing(CLASS);
    if (names === undefined) {
      this.forget();
      return unlisted(CLASS, error);
    }
    const { cards, partitions, problems, isComplete } = this.#findPlaces(names, pace);
    if (cards.length === 0) return { reports: [], problems, listing: isComplete ? 'complete' : 'partial' };
    const topology = this.#readTopology(pace);
    const seats = partitionedCards(cards, partitions, topology);
    const reads = seats.map((seat): CardRead => {
      const card = this.#cards.get(seat.place.address) as Card;
      return { card, seat, sample: card.read(pace, nodeOf(seat)?.gfxTarget) };
    });
    const uses = this.#useOf(reads, pace);
    const devices = new Map(
      reads.map(({ card, seat }) => [card, cardDevice(seat, card.facts, seats, this.#identities, isUnread(topology))]),
    );
    const reports = reads.flatMap((read) => this.#reportsOf(read, devices.get(read.card) as Device, uses, { reads, topology }));
    return {
      reports,
      problems: [...problems, ...reads.flatMap(({ card }) => card.problems), ...this.#commonProblems(topology)],
      listing: isComplete && (!isUnread(topology) || reads.every(({ card }) => card.isUndivided)) ? 'complete' : 'partial',
    };
  }

  #findPlaces(names: readonly string[], pace: Pace): Places {
    const { sys } = this.#host;
    // Another card in the place of one has the same names.
    // Two cards may also have exchanged their names.
    const entries = [...this.#cards.values()].flatMap(({ place: { directory, nodes } }) => [directory, `${CLASS}/${nodes[0]}`]);
    const key = [names.join(' '), ...entries.map((path) => sys.identity(path))].join(' ');
    const read = () => ({ key, places: this.#readPlaces(names) });
    return this.#places.of(pace, this.#options['facts-interval'], read, (kept) => kept.key === key).places;
  }

  #readPlaces(names: readonly string[]): Places {
    const { sys } = this.#host;
    const places = findPlaces(sys, names);
    this.#cards = reconciled(
      this.#cards,
      places.cards,
      ({ address }) => address,
      (place) => new Card(this.#host, this.#options, this.#database, place),
      (card, place) => isDeepStrictEqual(place, card.place) && sys.identity(place.directory) === card.identity,
    );
    return places;
  }

  #readTopology(pace: Pace): Topology {
    const { sys } = this.#host;
    const generation = topologyGeneration(sys);
    const everyMs = generation === undefined ? this.#options['facts-interval'] : Number.POSITIVE_INFINITY;
    const read = () => ({ generation, topology: readTopology(sys) });
    return this.#topology.of(pace, everyMs, read, (kept) => kept.generation === generation && !isUnread(kept.topology)).topology;
  }

  #commonProblems(topology: Topology): readonly Problem[] {
    const problems: Problem[] = [];
    if (isUnread(topology))
      problems.push({ code: 'topology-unreadable', message: `reading /sys/${topology.path} fails with ${topology.error}` });
    const { hidden } = this.#processes;
    if (hidden !== undefined) problems.push({ code: 'processes-hidden', message: hidden });
    return problems;
  }

  /** Use of each card and partition, keyed by the seat or partition. The processes of a sleeping card are not read: it has none. */
  #useOf(reads: readonly CardRead[], pace: Pace): ReadonlyMap<PartitionedCard | Partition, GpuUse> {
    const used: { readonly key: PartitionedCard | Partition; readonly renderMinor?: number; readonly gpuId?: string }[] = [];
    for (const { seat, sample } of reads) {
      if (sample.state !== 'awake') continue;
      const parts = seat.partitions.length > 0 ? seat.partitions : [seat];
      for (const key of parts) {
        const renderMinor = key.node?.renderMinor ?? ('nodes' in (key.place ?? {}) ? renderMinorOf(key.place?.nodes ?? []) : undefined);
        const gpuId = key.node?.gpuId;
        used.push({ key, ...(renderMinor !== undefined && { renderMinor }), ...(gpuId !== undefined && { gpuId }) });
      }
    }
    const uses = this.#processes.read(used, pace);
    return new Map(used.flatMap(({ key }, n) => (uses[n] === undefined ? [] : [[key, uses[n] as GpuUse]])));
  }

  #reportsOf(
    { card, seat, sample }: CardRead,
    device: Device,
    uses: ReadonlyMap<PartitionedCard | Partition, GpuUse>,
    all: { readonly reads: readonly CardRead[]; readonly topology: Topology },
  ): readonly DeviceReport[] {
    if (sample.state === 'hung')
      return [device, ...seat.partitions.map((each) => partitionDevice(device, seat, each))].map((each) => ({ device: each }));
    const node = nodeOf(seat);
    const handled = node?.rasBlocks ?? (handlesErrors(card.facts.pciDevice) ? ['umc', 'gfx'] : 'none');
    const findings = [
      ...findingsOf(sample, this.#linkedFatal(device, sample)),
      ...(sample.state === 'awake' ? missingRasFindings(sample, handled) : []),
      ...topologyFindings({ card, seat, sample }, all),
    ];
    const use = uses.get(seat);
    if (sample.state === 'awake') {
      if (node !== undefined) sample.readings.add(metrics.partitions, seat.partitions.length || 1);
      sample.readings.add(metrics.computeUnitsBusy, use?.computeUnits);
    }
    const readings = sample.state === 'asleep' ? ASLEEP : sample.state === 'gone' ? [] : sample.readings.list();
    const whole: DeviceReport = { device, read: { readings, findings, ...(use !== undefined && { processes: use.processes }) } };
    const shared = findings.filter(isFatalKind);
    return [
      whole,
      ...seat.partitions.map((partition) => this.#partitionReport(partition, { card, seat, sample }, device, shared, uses.get(partition))),
    ];
  }

  /** Undefined when the card counts alone, or the log does not explain all errors that it counts. */
  #linkedFatal({ id, peers = [] }: Device, sample: CardReadResult): LinkedFatal | undefined {
    const events = sample.state === 'awake' ? sample.ras.events : undefined;
    const count = events === undefined || events === 'unknown' ? 0 : Number(events.fatal_error ?? 0);
    if (count === 0 || peers.length === 0) return undefined;
    const lines = [id, ...peers.map(({ device }) => device)].map((address) => [address, this.#log.linesOf(address, FATAL_ROW)] as const);
    const source = lines.find(([, number]) => number > 0)?.[0];
    const explained = lines.reduce((sum, [, number]) => sum + number, 0);
    return source === undefined || explained < count ? undefined : { own: lines[0]?.[1] ?? 0, source };
  }

  /** A fault that takes the card out of service also takes its partitions out of service. */
  #partitionReport(
    partition: Partition,
    { card, seat, sample }: CardRead,
    whole: Device,
    shared: readonly Finding[],
    use?: GpuUse,
  ): DeviceReport {
    const device = partitionDevice(whole, seat, partition);
    if (sample.state !== 'awake') return { device, read: { readings: sample.state === 'asleep' ? ASLEEP : [], findings: shared } };
    const readings = new ReadingSet();
    readings.add(metrics.asleep, 0);
    const { memoryBank, memoryBytes } = partition.node;
    readings.add(metrics.memoryTotal, memoryBytes);
    if (memoryBank !== undefined) readings.add(metrics.memoryUsed, parseCount(this.#host.sys.reread(`${memoryBank}/used_memory`).text));
    readings.add(metrics.computeUnitsBusy, use?.computeUnits);
    const directory = partition.place === undefined ? seat.place.directory : `devices/platform/${partition.place.name}`;
    const samples = card.readPartition(directory) ?? sample.partitions[partition.number];
    if (samples !== undefined) addPartition(readings, samples);
    return { device, read: { readings: readings.list(), findings: shared, ...(use !== undefined && { processes: use.processes }) } };
  }
}

/** Readings of a sleeping card: only that it sleeps. */
const ASLEEP: readonly Reading[] = [{ metric: metrics.asleep.name, value: 1 }];

/** Node of the topology that tells about a card. */
const nodeOf = ({ node, partitions }: PartitionedCard): KfdNode | undefined => node ?? partitions[0]?.node;

const SPECS: ReadonlyMap<string, ConditionSpec> = new Map(
  [...Object.values(conditions), ...pcieConditions].map((spec) => [spec.type, spec]),
);

const isFatalKind = ({ type }: Finding): boolean => SPECS.get(type)?.severity === 'fatal';

/** Findings that need the topology of all cards. */
function topologyFindings(
  { card, seat, sample }: CardRead,
  { reads, topology }: { readonly reads: readonly CardRead[]; readonly topology: Topology },
): Finding[] {
  if (sample.state !== 'awake' || topology.nodes === undefined) return [];
  const hasNode = seat.node !== undefined || seat.partitions.length > 0;
  const missing = declaredFinding(conditions.KfdMissing, hasNode ? 'HasNode' : 'NoNode', {
    message: hasNode ? 'the topology of KFD has the card' : 'the topology of KFD does not have the card',
    level: hasNode,
  });
  const present = seat.partitions.length || (hasNode ? 1 : 0);
  const alike = reads.filter(
    (other) => other.card.facts.pciDevice === card.facts.pciDevice && other.card.facts.computePartition === card.facts.computePartition,
  );
  const expected = expectedPartitions(
    card.facts.computePartition,
    present,
    alike.map(({ seat: other }) => other.partitions.length),
  );
  if (expected === undefined || !hasNode) return [missing];
  const isFewer = present < expected;
  const message = `${present} of ${expected} partitions of mode ${card.facts.computePartition}`;
  return [missing, declaredFinding(conditions.PartitionMissing, isFewer ? 'FewerThanMode' : 'AsMode', { status: isFewer, message })];
}
