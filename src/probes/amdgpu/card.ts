import type { Host } from '../../host/host.ts';
import { numaNodeOf, pciPathOf } from '../../host/pci/pci.ts';
import type { PciDatabase } from '../../host/pci/pci-names.ts';
import type { Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { DirectAccess } from '../../model/device.ts';
import type { Labels, Reading } from '../../model/metric.ts';
import { DeviceFiles, type DriverErrors } from '../kit/device-files.ts';
import { cardHangs, idsInUevent, isCardAsleep } from '../kit/drm/cards.ts';
import { addRows, type FileRow, listedRows, readFacts } from '../kit/file-rows.ts';
import { type Channel, findMonitor, type Monitors, parseInteger, readMonitors, type SensorRow } from '../kit/hwmon.ts';
import { asOf, IntervalCache, isDue, type Pace } from '../kit/pace.ts';
import { readDirectAccess } from '../kit/pcie/function.ts';
import { PCIE_EVERY_MS, PcieReader, type PcieSample, pcieReadings } from '../kit/pcie/pcie.ts';
import { ReadingSet } from '../kit/reading-set.ts';
import { CredibleLimits, type LimitedTemperature } from '../kit/temperature.ts';
import { parsePercent } from '../kit/text.ts';
import type { AmdgpuOptions } from './discover.ts';
import { type CardPlace, MODELS, nameOf } from './discover.ts';
import { metrics } from './metrics.ts';
import { addRas, RasReader, type RasSample } from './ras.ts';
import { addTable } from './readings.ts';
import { decodeGpuMetrics, decodeXcpMetrics, type Sample, TABLE_LIMIT, type Table } from './table.ts';

/** Facts of a card that rarely change. */
export interface CardFacts {
  readonly numaNode?: number;
  readonly model?: string;
  /** Model by the database of PCI ids of the host. */
  readonly listedModel?: string;
  readonly pciVendor?: string;
  readonly pciDevice?: string;
  readonly pciPath?: string;
  readonly direct?: DirectAccess;
  readonly serial?: string;
  readonly vbios?: string;
  readonly memoryVendor?: string;
  /** 16 hexadecimal digits. */
  readonly uniqueId?: string;
  /** `SPX`, `CPX`, … */
  readonly computePartition?: string;
  /** `NPS1`, … */
  readonly memoryPartition?: string;
  readonly readings: readonly Reading[];
}

/** All that one collection read of a card. */
export type CardReadResult =
  /** The card sleeps: nothing but its runtime status was read. */
  | { readonly state: 'asleep' }
  /** Every read of its configuration gives all ones. */
  | { readonly state: 'gone'; readonly pcie: PcieSample }
  /** A read of its files hangs, so nothing can be said about it. */
  | { readonly state: 'hung' }
  | AwakeSample;

export interface AwakeSample {
  readonly state: 'awake';
  /** The driver refuses reads, as during a reset. Undefined when no value was read. */
  readonly isRefused?: boolean;
  readonly readings: ReadingSet;
  readonly temperatures: readonly LimitedTemperature[];
  /** What its table tells of each partition, in the order of their numbers. */
  readonly partitions: Table['partitions'];
  readonly pcie?: PcieSample;
  readonly ras: RasSample;
}

/** Vendor of graphics cards and of the switches on them. Bridges of AMD's processors have another vendor, 0x1022. */
export const ATI = '0x1002';

/**
 * amdgpu answers EPERM during a reset and while the card sleeps, and EINVAL when a query of the firmware fails: amdgpu_pm.c, amdgpu_ras.c.
 * Kernels answer some of these reads with an empty text.
 */
const AMDGPU_ERRORS: DriverErrors = { EPERM: 'busy', EINVAL: 'silent', empty: 'silent' };

/** Mode of the partitions; a card without partitioning does not have the file. */
const MODE = 'current_compute_partition';

/** Without an answer to these reads and to those of the hardware monitor, the driver refuses reads. */
const BUSY: readonly FileRow[] = [
  { file: 'gpu_busy_percent', metric: metrics.utilization, labels: { engine: 'gpu' }, parse: parsePercent },
  { file: 'mem_busy_percent', metric: metrics.utilization, labels: { engine: 'memory' }, parse: parsePercent },
  { file: 'vcn_busy_percent', metric: metrics.utilization, labels: { engine: 'video' }, parse: parsePercent },
];

/** Memory answers during a reset, too. */
const MEMORY: readonly FileRow[] = [
  { file: 'mem_info_vram_used', metric: metrics.memoryUsed },
  { file: 'mem_info_gtt_used', metric: metrics.gttUsed },
];

const FACTS: readonly FileRow[] = [
  { file: 'mem_info_vram_total', metric: metrics.memoryTotal },
  { file: 'mem_info_gtt_total', metric: metrics.gttTotal },
];

const REPLAYS: readonly FileRow[] = [{ file: 'pcie_replay_count', metric: metrics.pcieReplays }];

/** Reads one card. Its directory is named by the PCI address, so the files can never belong to another card. */
export class Card {
  readonly place: CardPlace;
  /** Distinguishes its directory from that of a later card in the same place. */
  readonly identity: string | undefined;
  /** Facts of the last time when the card was awake. */
  facts: CardFacts = { readings: [] };
  /** Problems of the last read. */
  problems: readonly Problem[] = [];
  readonly #host: Host;
  readonly #options: AmdgpuOptions;
  readonly #database: PciDatabase;
  readonly #ras: RasReader;
  readonly #limits = new CredibleLimits();
  #monitor: Monitors | undefined;
  #busy: readonly FileRow[] = [];
  #memory: readonly FileRow[] = [];
  #factsAtMs: number | undefined;
  readonly #pcie: PcieReader | undefined;
  readonly #replays = new IntervalCache<readonly Reading[]>();
  /** Problems of reads whose results are kept. */
  #keptProblems: { readonly facts: readonly Problem[]; readonly pcie: readonly Problem[] } = { facts: [], pcie: [] };
  /** Names of the files below the directory. Absent files are not opened. */
  #names: ReadonlySet<string> = new Set();

  constructor(host: Host, options: AmdgpuOptions, database: PciDatabase, place: CardPlace) {
    this.#host = host;
    this.#options = options;
    this.#database = database;
    this.place = place;
    this.identity = host.sys.identity(place.directory);
    this.#ras = new RasReader(options);
    const isOnBus = place.directory.startsWith('bus/');
    this.#pcie = isOnBus ? new PcieReader(host.sys, place.address, ({ vendor }) => vendor === ATI) : undefined;
  }

  /** `gfxTarget`: instruction set, from the topology of KFD. */
  read(pace: Pace, gfxTarget: string | undefined): CardReadResult {
    const files = new DeviceFiles(this.#host.sys, this.place.directory, { device: this.place.address, errors: AMDGPU_ERRORS });
    this.problems = [];
    if (isCardAsleep(this.#host.sys, this.place.directory)) return { state: 'asleep' };
    const pcie = this.#pcie?.read(pace);
    if (pcie?.answers === false) return { state: 'gone', pcie };
    const replays = this.#readReplays(files, pace);
    this.#readFacts(files, pace);
    const sample = this.#readValues(files, pace, replays, gfxTarget);
    // The card may have begun to sleep after the first look.
    if (files.refused > 0 && isCardAsleep(this.#host.sys, this.place.directory)) return { state: 'asleep' };
    if (files.isHung) {
      this.problems = [cardHangs(this.place)];
      return { state: 'hung' };
    }
    this.problems = [...files.problems, ...this.#keptProblems.facts, ...this.#keptProblems.pcie, ...sample.ras.problems];
    if (pcie === undefined) return sample;
    sample.readings.append(pcieReadings(pcie));
    return { ...sample, pcie };
  }

  /** The card is known to have no partitions, whatever the topology tells: it cannot have them, or none was made. */
  get isUndivided(): boolean {
    const { computePartition } = this.facts;
    return computePartition === undefined ? this.#names.size > 0 && !this.#names.has(MODE) : computePartition === 'SPX';
  }

  /** Table of a partition, from its own file. */
  readPartition(directory: string): readonly Sample[] | undefined {
    const bytes = this.#host.sys.bytes(`${directory}/xcp/xcp_metrics`, TABLE_LIMIT);
    return bytes === undefined ? undefined : decodeXcpMetrics(bytes).table?.samples;
  }

  close(): void {
    this.#host.sys.forget(this.place.directory);
  }

  #readReplays(files: DeviceFiles, pace: Pace): readonly Reading[] {
    if (this.#pcie === undefined) return [];
    const replays = this.#replays.of(pace, PCIE_EVERY_MS, () => {
      const readings = new ReadingSet();
      const apart = files.apart();
      addRows(readings, apart, REPLAYS, 'once');
      this.#keep('pcie', apart, files);
      return readings.list();
    });
    return asOf(replays, this.#replays.readMs(pace));
  }

  #keep(what: 'facts' | 'pcie', apart: DeviceFiles, files: DeviceFiles): void {
    if (apart.isHung) files.isHung = true;
    this.#keptProblems = { ...this.#keptProblems, [what]: apart.problems };
  }

  #readFacts(all: DeviceFiles, pace: Pace): void {
    if (!isDue(this.#factsAtMs, this.#options['facts-interval'], pace)) return;
    this.#factsAtMs = pace.nowMs;
    const files = all.apart();
    this.#names = new Set(files.names('.'));
    const monitor = findCardMonitor(files);
    this.#monitor = monitor;
    this.#busy = [...listedRows(files, BUSY), ...(monitor?.fans ?? [])];
    this.#memory = listedRows(files, MEMORY);
    const word = (file: string): string | undefined => (this.#names.has(file) ? files.text(file) : undefined);
    const mode = (file: string, pattern: RegExp): string | undefined => pattern.exec(word(file) ?? '')?.[0];
    // A fact that cannot be read now is kept: the driver refuses some of them during a reset.
    this.facts = {
      ...this.facts,
      ...defined({
        ...this.#identity(word),
        computePartition: mode(MODE, /^[A-Z]{1,4}PX$/),
        memoryPartition: mode('current_memory_partition', /^NPS\d{1,2}$/),
        readings: readFacts(files, FACTS, this.facts.readings),
      }),
    };
    this.#keep('facts', files, all);
  }

  /** Facts that do not change while the card stays at its address. A fact that was read once is not read again. */
  #identity(word: (file: string) => string | undefined): { [K in keyof CardFacts]?: CardFacts[K] | undefined } {
    const { sys } = this.#host;
    const { address, directory } = this.place;
    const { facts } = this;
    const ids = facts.pciDevice === undefined ? idsInUevent(sys, directory) : undefined;
    const memoryVendor = facts.memoryVendor ?? word('mem_info_vram_vendor');
    const unique = facts.uniqueId ?? word('unique_id')?.toLowerCase();
    const model = facts.model ?? word('product_name');
    const pciDevice = facts.pciDevice ?? word('device')?.toLowerCase() ?? ids?.device;
    const pciPath = facts.pciPath ?? pciPathOf(sys, address);
    return {
      numaNode: facts.numaNode ?? numaNodeOf(sys, address),
      model,
      pciVendor: facts.pciVendor ?? word('vendor')?.toLowerCase() ?? ids?.vendor,
      pciDevice,
      listedModel: model !== undefined || pciDevice === undefined || pciDevice in MODELS ? undefined : this.#listedModel(pciDevice, word),
      pciPath,
      direct: facts.pciPath === undefined ? readDirectAccess(sys, address, pciPath) : facts.direct,
      serial: facts.serial ?? word('serial_number'),
      vbios: facts.vbios ?? word('vbios_version'),
      memoryVendor: memoryVendor === 'unknown' ? undefined : memoryVendor,
      uniqueId: unique !== undefined && /^[0-9a-f]{16}$/.test(unique) && !/^0+$/.test(unique) ? unique : undefined,
    };
  }

  /** The name that the host has for the card, now: packages of the host are updated while it runs. */
  #listedModel(pciDevice: string, word: (file: string) => string | undefined): string | undefined {
    const subsystem = [word('subsystem_vendor'), word('subsystem_device')].map((id) => id?.replace(/^0x/, '').toLowerCase()).join(' ');
    return nameOf(this.#database.of({ device: pciDevice.replace(/^0x/, ''), subsystem }));
  }

  /** Files come first, because the driver computes them from newer or more exact values than its table. */
  #readValues(files: DeviceFiles, pace: Pace, replays: readonly Reading[], gfxTarget: string | undefined): AwakeSample {
    const before = { answered: files.answered, refused: files.refused };
    const readings = new ReadingSet();
    readings.add(metrics.asleep, 0);
    readings.add(metrics.info, 1, infoLabels(this.facts, gfxTarget));
    addRows(readings, files, this.#busy);
    const monitor = this.#monitor === undefined ? undefined : readMonitors(files, this.#limits, this.#monitor, 'live');
    readings.addAll(monitor?.readings ?? []);
    readings.addAll(replays);
    const isAnswered = files.answered > before.answered;
    const isRefused = isAnswered ? false : files.refused > before.refused ? true : undefined;
    const partitions = this.#addTable(readings, files, gfxTarget)?.partitions ?? [];
    addRows(readings, files, this.#memory);
    readings.addAll(this.facts.readings);
    const ras = this.#names.has('ras') ? this.#ras.read(files, pace) : { isAbsent: true as const, problems: [], blocks: [] };
    addRas(readings, ras);
    return defined({ state: 'awake', ras, isRefused, readings, temperatures: monitor?.temperatures ?? [], partitions });
  }

  #addTable(readings: ReadingSet, files: DeviceFiles, gfxTarget: string | undefined): Table | undefined {
    if (!this.#names.has('gpu_metrics')) return undefined;
    const path = files.path('gpu_metrics');
    const bytes = this.#host.sys.bytes(path, TABLE_LIMIT);
    // The driver refuses by an empty file. Reads of the hardware monitor fail with the reason, so no problem is reported here.
    if (bytes === undefined || bytes.length === 0) return undefined;
    const { table, problem } = decodeGpuMetrics(bytes);
    if (problem !== undefined) files.problem(problem.code, `/sys/${path}: ${problem.message}`);
    if (table === undefined) return undefined;
    const [edgeCelsius, watts] = [readings.valueOf(metrics.temperature, 'edge'), readings.valueOf(metrics.power, 'gpu')];
    if (!addTable(readings, table, { edgeCelsius, watts, gfxTarget }))
      files.problem('metrics-unit', `/sys/${path}: powers of version ${table.version} are in watts or milliwatts`);
    return table;
  }
}

const infoLabels = (facts: CardFacts, gfxTarget = ''): Labels => ({
  vbios: facts.vbios ?? '',
  memory_vendor: facts.memoryVendor ?? '',
  gfx_target: gfxTarget,
  unique_id: facts.uniqueId ?? '',
  compute_partition: facts.computePartition ?? '',
  memory_partition: facts.memoryPartition ?? '',
});

/** Names of clocks, keyed by label. */
const CLOCKS: Readonly<Record<string, string>> = { sclk: 'graphics', mclk: 'memory' };

/** Name of a temperature. MI300 has no edge temperature, so the label decides and not the number. */
const temperatureOf = ({ label, name }: Channel): string => (label === 'mem' ? 'memory' : label || (name === 'temp1' ? 'edge' : name));

/** Power 1 is the power of the card, and the others are averages over other times. A sum over sensors must not count power twice. */
function powerOf({ name, label, isAverage, attribute }: Channel): string {
  const power = name === 'power1' ? 'gpu' : label || name;
  return isAverage && (name !== 'power1' || attribute('input') !== undefined) ? `${power}_average` : power;
}

const SENSORS: readonly SensorRow[] = [
  {
    kind: 'temp',
    metric: metrics.temperature,
    labels: (channel) => ({ sensor: temperatureOf(channel) }),
    absent: (channel) => (temperatureOf(channel) === 'memory' ? 0 : undefined),
    limits: { metric: metrics.temperatureLimit, of: { crit: 'crit', emergency: 'emergency' } },
  },
  // No awake card draws 0 W.
  { kind: 'power', metric: metrics.power, labels: (channel) => ({ sensor: powerOf(channel) }), absent: () => 0 },
  {
    kind: 'power',
    labels: () => ({}),
    limits: {
      metric: metrics.powerLimit,
      of: { cap: 'enforced', cap_default: 'default', cap_min: 'minimum', cap_max: 'maximum' },
      labels: ({ number }, limit) => (number === 1 ? { limit } : undefined),
      isZeroReal: true,
    },
  },
  {
    kind: 'freq',
    metric: metrics.clock,
    labels: ({ label, number }) => ({ clock: (CLOCKS[label] ?? label) || (number === 1 ? 'graphics' : 'memory') }),
  },
  { kind: 'in', metric: metrics.voltage, labels: ({ label, name }) => ({ sensor: label || name }) },
  { kind: 'fan', metric: metrics.fanSpeed, labels: ({ number }) => ({ fan: String(number - 1) }) },
];

/** Finds the monitor of the driver, and its fans. A card may have other monitors, of its cables. */
function findCardMonitor(files: DeviceFiles): (Monitors & { readonly fans: readonly FileRow[] }) | undefined {
  const directory = files
    .names('hwmon')
    .map((name) => `hwmon/${name}`)
    .find((each) => /^(?:amdgpu|radeon)$/.test(files.text(`${each}/name`) ?? ''));
  if (directory === undefined) return undefined;
  const file = `${directory}/pwm1`;
  const most = files.has(file) ? (files.value(`${file}_max`, parseInteger) ?? 0) : 0;
  const parse = (text: string): number | undefined => {
    const pwm = parseInteger(text);
    return pwm === undefined ? undefined : pwm / most;
  };
  const fans = most > 0 ? [{ file, metric: metrics.fanRatio, labels: { fan: '0' }, parse }] : [];
  return { ...findMonitor(files, directory, SENSORS), fans };
}
