import type { Host } from '../../host/host.ts';
import { numaNodeOf, pciPathOf } from '../../host/pci/pci.ts';
import type { Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { DirectAccess } from '../../model/device.ts';
import type { Labels, Reading } from '../../model/metric.ts';
import { DeviceFiles } from '../kit/device-files.ts';
import { cardHangs, idsInUevent, isCardAsleep } from '../kit/drm/cards.ts';
import { addRows, type FileRow, readFacts } from '../kit/file-rows.ts';
import { readMonitors } from '../kit/hwmon.ts';
import { isDue, type Pace } from '../kit/pace.ts';
import { readDirectAccess } from '../kit/pcie/function.ts';
import { type BridgeIds, PcieReader, type PcieSample, pcieReadings } from '../kit/pcie/pcie.ts';
import { ReadingSet } from '../kit/reading-set.ts';
import { CredibleLimits, type LimitedTemperature } from '../kit/temperature.ts';
import { parseCount, parseFlag } from '../kit/text.ts';
import type { IntelgpuOptions } from './declaration.ts';
import { type CardPlace, OWN_SWITCHES } from './discover.ts';
import { findGts, type Gt, IdleMeter, readThrottle, type ThrottleSample } from './gts.ts';
import { type CardMonitors, EnergyMeter, findCardMonitors, readEnergies } from './hwmon.ts';
import { metrics } from './metrics.ts';
import { engineOf } from './processes.ts';
import { readProfile } from './sriov.ts';

/** Facts of a card that rarely change. */
export interface CardFacts {
  readonly numaNode?: number;
  readonly pciVendor?: string;
  readonly pciDevice?: string;
  readonly pciPath?: string;
  readonly direct?: DirectAccess;
  /** Versions of its firmware, as labels. */
  readonly versions: Labels;
  readonly readings: readonly Reading[];
  /** Classes of engines, as in `device_utilization_ratio`. */
  readonly engines: readonly string[];
}

/** All that one collection read of a card. */
export type CardReadResult =
  /** The card sleeps: only its power management was read. `isIdle`: it slept since the last read, too. */
  | { readonly state: 'asleep'; readonly isIdle: boolean; readonly isInSurvivability?: boolean }
  /** Every read of its configuration gives all ones. */
  | { readonly state: 'gone'; readonly pcie: PcieSample }
  /** A read of its files hangs, so nothing can be said about it. */
  | { readonly state: 'hung' }
  | AwakeSample;

export interface AwakeSample {
  readonly state: 'awake';
  /** No GT left the power state C6 since the last read. */
  readonly isIdle: boolean;
  /** All but those of its processes. */
  readonly readings: readonly Reading[];
  readonly temperatures: readonly LimitedTemperature[];
  readonly throttle?: ThrottleSample;
  /** Whether the file of the survivability mode exists; undefined when the names of the files are unknown. */
  readonly isInSurvivability?: boolean;
  /** Undefined for a card that cannot do this. */
  readonly isDowngraded?: boolean | 'unknown';
  readonly pcie?: PcieSample;
  /** Profiles of the virtual functions, keyed by the number of their `virtfn` link. */
  readonly vfProfiles: ReadonlyMap<number, readonly Reading[]>;
}

/** Facts that need reads of the card, renewed together. */
interface Described {
  readonly names: ReadonlySet<string> | undefined;
  readonly gts: readonly Gt[];
  readonly rows: readonly FileRow[];
  readonly monitors: CardMonitors;
  readonly readings: readonly Reading[];
  readonly vfProfiles: ReadonlyMap<number, readonly Reading[]>;
  readonly isDowngraded?: boolean | 'unknown';
  readonly problems: readonly Problem[];
}

/** Reads one card. Its directory is named by the PCI address, so the files can never belong to another card. */
export class Card {
  readonly place: CardPlace;
  /** Facts of the last time when the card was awake. */
  facts: CardFacts = { versions: {}, readings: [], engines: [] };
  /** Problems of the last read. */
  problems: readonly Problem[] = [];
  readonly #host: Host;
  readonly #options: IntelgpuOptions;
  readonly #energy = new EnergyMeter();
  readonly #idle = new IdleMeter();
  readonly #limits = new CredibleLimits();
  #described: Described | undefined;
  #describedAtMs = 0;
  readonly #pcie: PcieReader | undefined;

  constructor(host: Host, options: IntelgpuOptions, place: CardPlace) {
    this.#host = host;
    this.#options = options;
    this.place = place;
    const { address, directory, parent } = place;
    // The link belongs to the card, and a virtual function may answer with all ones where the card works.
    const hasLink = directory.startsWith('bus/') && parent === undefined;
    const isOwn = ({ vendor, device }: BridgeIds): boolean => vendor === INTEL && OWN_SWITCHES.has(device);
    this.#pcie = hasLink ? new PcieReader(host.sys, address, isOwn) : undefined;
  }

  read(pace: Pace): CardReadResult {
    const { nowMs } = pace;
    this.problems = [];
    if (isCardAsleep(this.#host.sys, this.place.directory)) return this.#asleep();
    const files = new DeviceFiles(this.#host.sys, this.place.directory, { device: this.place.address });
    const pcie = this.#pcie?.read(pace);
    if (pcie?.answers === false) return { state: 'gone', pcie };
    const described = this.#describe(pace);
    const readings = new ReadingSet();
    readings.add(metrics.asleep, 0);
    addRows(readings, files, described.rows);
    const monitor = readMonitors(files, this.#limits, described.monitors, 'live');
    readings.addAll(monitor.readings);
    const energies = readEnergies(files, described.monitors);
    const throttle = readThrottle(readings, files, described.gts);
    if (files.isHung) {
      this.problems = [cardHangs(this.place)];
      return { state: 'hung' };
    }
    this.problems = [...described.problems, ...files.problems];
    this.#energy.add(readings, energies, nowMs);
    readings.addAll(described.readings);
    if (pcie !== undefined) readings.append(pcieReadings(pcie));
    const residency = new Map(readings.of(metrics.gtIdle).map(({ labels, value }) => [labels?.gt ?? '', Number(value) * 1_000]));
    const isWhole = residency.size > 0 && residency.size === described.gts.length;
    return defined({
      state: 'awake',
      isIdle: isWhole ? this.#idle.awake(residency, nowMs) : this.#idle.unknown(),
      readings: readings.list(),
      temperatures: monitor.temperatures,
      vfProfiles: described.vfProfiles,
      throttle,
      ...this.#survivability(described.names),
      isDowngraded: described.isDowngraded,
      pcie,
    });
  }

  close(): void {
    this.#host.sys.forget(this.place.directory);
  }

  #asleep(): CardReadResult {
    this.#energy.rest();
    const activeMs = parseCount(this.#host.sys.reread(`${this.place.directory}/power/runtime_active_time`).text);
    return { state: 'asleep', isIdle: this.#idle.asleep(activeMs), ...this.#survivability(this.#names()) };
  }

  /** The file is there only in this mode. Only a card has the mode, and only with xe. */
  #survivability(names: ReadonlySet<string> | undefined): Pick<AwakeSample, 'isInSurvivability'> {
    if (names === undefined || this.place.driver !== 'xe' || this.place.parent !== undefined) return {};
    return { isInSurvivability: names.has('survivability_mode') };
  }

  #describe(pace: Pace): Described {
    const before = this.#described;
    if (before !== undefined && !isDue(this.#describedAtMs, this.#options['facts-interval'], pace)) {
      // Survivability is looked up at each refresh, because the card enters it at any time.
      return { ...before, names: this.#names() };
    }
    const files = new DeviceFiles(this.#host.sys, this.place.directory, { device: this.place.address });
    const gts = findGts(files, this.place.minorDirectory);
    const hasProfiles = files.has('sriov_admin');
    const profile = hasProfiles ? readProfile(files, 'sriov_admin/pf/profile') : [];
    const described = {
      names: this.#names(),
      gts,
      rows: gts.flatMap(({ rows }) => rows),
      monitors: findCardMonitors(files),
      vfProfiles: hasProfiles ? this.#vfProfiles(files) : new Map(),
      ...downgradeOf(files),
    };
    this.#readFacts(files, gts);
    const readings = new ReadingSet();
    const { type, versions } = { type: typeOf(this.place), ...this.facts };
    readings.add(metrics.info, 1, { type, ...Object.fromEntries(VERSIONS.map((version) => [version, ''])), ...versions });
    for (const { name: gt, tile, type: kind } of gts) readings.add(metrics.gtInfo, 1, { gt, tile: `${tile ?? ''}`, type: kind ?? '' });
    readings.addAll(profile);
    readings.addAll(this.facts.readings);
    this.#described = { ...described, readings: readings.list(), problems: files.problems };
    this.#describedAtMs = pace.nowMs;
    return this.#described;
  }

  #names(): ReadonlySet<string> | undefined {
    const { names } = this.#host.sys.listing(this.place.directory);
    return names === undefined ? undefined : new Set(names);
  }

  /** The kernel numbers virtual functions from 1 here, and from 0 in the links. */
  #vfProfiles(files: DeviceFiles): ReadonlyMap<number, readonly Reading[]> {
    const numbers = files.names('sriov_admin').flatMap((name) => /^vf([1-9]\d{0,3})$/.exec(name)?.[1] ?? []);
    return new Map(
      numbers.flatMap((number): [number, readonly Reading[]][] => {
        // Only a function that is enabled has the link to its device.
        if (this.#host.sys.link(`${files.directory}/sriov_admin/vf${number}/device`) === undefined) return [];
        return [[Number(number) - 1, readProfile(files, `sriov_admin/vf${number}/profile`)]];
      }),
    );
  }

  #readFacts(files: DeviceFiles, gts: readonly Gt[]): void {
    const { sys } = this.#host;
    const { address, minorDirectory } = this.place;
    const ids = idsInUevent(sys, files.directory);
    const id = (file: 'vendor' | 'device'): string | undefined => files.text(file)?.toLowerCase() ?? ids[file];
    const versions = VERSIONS.flatMap((version) => {
      const text = files.has(`lb_${version}`) ? files.text(`lb_${version}`) : undefined;
      return text !== undefined && /^\d{1,5}(?:\.\d{1,5}){0,3}$/.test(text) ? [[version, text]] : [];
    });
    const pciPath = pciPathOf(sys, address);
    // A fact that cannot be read now is kept.
    const read = defined({
      numaNode: numaNodeOf(sys, address),
      pciVendor: id('vendor'),
      pciDevice: id('device'),
      pciPath,
      direct: pciPath === this.facts.pciPath ? this.facts.direct : readDirectAccess(sys, address, pciPath),
      versions: { ...this.facts.versions, ...Object.fromEntries(versions) },
      readings: readFacts(files, FACTS, [...memoryTotal(files, minorDirectory, gts), ...this.facts.readings]),
      engines: enginesOf(files, minorDirectory, gts),
    });
    this.facts = { ...this.facts, ...read };
  }
}

const FACTS: readonly FileRow[] = [
  { file: 'sriov_numvfs', metric: metrics.functions },
  { file: 'sriov_totalvfs', metric: metrics.functionsMax },
];

/** Versions of firmware, by label. */
const VERSIONS = ['fan_control_version', 'voltage_regulator_version'];

/** Integrated GPUs of Intel are always at this place of the first bus. */
const INTEGRATED = /:00:02\.0$/;

const typeOf = ({ address, parent }: CardPlace): string =>
  parent !== undefined ? 'vf' : INTEGRATED.test(address) ? 'integrated' : 'discrete';

const INTEL = '0x8086';

function downgradeOf(files: DeviceFiles): Pick<Described, 'isDowngraded'> {
  if (!files.has('auto_link_downgrade_status')) return {};
  const { value, isUnknown } = files.once('auto_link_downgrade_status', parseFlag);
  if (value !== undefined) return { isDowngraded: value };
  return isUnknown ? { isDowngraded: 'unknown' } : {};
}

/** xe lists the classes of engines of each GT, and i915 each engine of the card: `rcs0`. */
function enginesOf(files: DeviceFiles, minorDirectory: string | undefined, gts: readonly Gt[]): readonly string[] {
  const ofXe = gts.flatMap(({ name, tile }) => (tile === undefined ? [] : files.names(`tile${tile}/${name}/engines`)));
  const names = ofXe.length > 0 || minorDirectory === undefined ? ofXe : files.names(`${minorDirectory}/engine`);
  const classes = names.flatMap((name) => /^(rcs|bcs|vcs|vecs|ccs)\d*$/.exec(name)?.[1] ?? []);
  return [...new Set(classes.map(engineOf))].sort();
}

/** Files of Intel's own driver packages: one of the card on i915, one of each tile on xe. */
function memoryTotal(files: DeviceFiles, minorDirectory: string | undefined, gts: readonly Gt[]): readonly Reading[] {
  const tiles = [...new Set(gts.flatMap(({ tile }) => tile ?? []))].map((tile) => `tile${tile}/physical_vram_size_bytes`);
  const sizes = [`${minorDirectory}/lmem_total_bytes`, ...tiles]
    .filter((file) => files.has(file))
    .map((file) => files.value(file, parseCount));
  const sum = sizes.reduce<number>((all, size = Number.NaN) => all + Number(size), 0);
  return Number.isSafeInteger(sum) && sum > 0 ? [{ metric: metrics.memoryTotal.name, value: sum }] : [];
}
