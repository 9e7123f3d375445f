import type { Host } from '../../host/host.ts';
import { numaNodeOf, pciPathOf } from '../../host/pci/pci.ts';
import type { Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { DirectAccess } from '../../model/device.ts';
import type { Reading, Value } from '../../model/metric.ts';
import { DeviceFiles } from '../kit/device-files.ts';
import { cardHangs, idsInUevent, isCardAsleep } from '../kit/drm/cards.ts';
import { isDue, type Pace } from '../kit/pace.ts';
import { readDirectAccess } from '../kit/pcie/function.ts';
import { type BridgeIds, PcieReader, type PcieSample } from '../kit/pcie/pcie.ts';
import { CredibleLimits } from '../kit/temperature.ts';
import { parseCount, parseFlag } from '../kit/text.ts';
import type { IntelgpuOptions } from './declaration.ts';
import { type CardPlace, OWN_SWITCHES } from './discover.ts';
import { findGts, type Gt, IdleMeter, parseMegahertz, readThrottle, type ThrottleSample } from './gts.ts';
import { type CardMonitorSample, type CardMonitors, EnergyMeter, findCardMonitors, readCardMonitors } from './hwmon.ts';
import { engineOf } from './processes.ts';
import { readProfile, type VfProfile } from './sriov.ts';

/** Facts of a card that rarely change. */
export interface CardFacts {
  readonly numaNode?: number;
  readonly pciVendor?: string;
  readonly pciDevice?: string;
  readonly pciPath?: string;
  readonly direct?: DirectAccess;
  readonly fanControl?: string;
  readonly voltageRegulator?: string;
  /** Bytes; only drivers from Intel's own packages tell. */
  readonly memoryTotal?: Value;
  readonly functions?: number;
  readonly functionsMax?: number;
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

/** Values of one GT, in hertz and seconds. */
export interface GtSample {
  readonly gt: Gt;
  readonly actual?: number;
  readonly requested?: number;
  readonly most?: number;
  readonly limits: Readonly<Partial<Record<'min' | 'max', number>>>;
  readonly idleSeconds?: number;
}

export interface AwakeSample {
  readonly state: 'awake';
  /** No GT left the power state C6 since the last read. */
  readonly isIdle: boolean;
  readonly gts: readonly GtSample[];
  readonly monitor: CardMonitorSample;
  readonly power: readonly Reading[];
  readonly throttle?: ThrottleSample;
  /** Whether the file of the survivability mode exists; undefined when the names of the files are unknown. */
  readonly isInSurvivability?: boolean;
  /** Undefined for a card that cannot do this. */
  readonly isDowngraded?: boolean | 'unknown';
  readonly pcie?: PcieSample;
  readonly profile?: VfProfile;
  /** Profiles of the virtual functions, keyed by the number of their `virtfn` link. */
  readonly vfProfiles: ReadonlyMap<number, VfProfile>;
}

/** Facts that need reads of the card, renewed together. */
interface Described {
  readonly names: ReadonlySet<string> | undefined;
  readonly gts: readonly Gt[];
  readonly monitors: CardMonitors;
  readonly profile?: VfProfile;
  readonly vfProfiles: ReadonlyMap<number, VfProfile>;
  readonly isDowngraded?: boolean | 'unknown';
  readonly problems: readonly Problem[];
}

/** Reads one card. Its directory is named by the PCI address, so the files can never belong to another card. */
export class Card {
  readonly place: CardPlace;
  /** Facts of the last time when the card was awake. */
  facts: CardFacts = { engines: [] };
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
    const gts = described.gts.map((gt) => readGt(files, gt));
    const monitor = readCardMonitors(files, this.#limits, described.monitors);
    const throttle = readThrottle(files, described.gts);
    if (files.isHung) {
      this.problems = [cardHangs(this.place)];
      return { state: 'hung' };
    }
    this.problems = [...described.problems, ...files.problems];
    const residency = new Map(gts.flatMap(({ gt, idleSeconds }) => (idleSeconds === undefined ? [] : [[gt.name, idleSeconds * 1_000]])));
    const isWhole = residency.size > 0 && gts.every(({ gt }) => gt.idle !== undefined && residency.has(gt.name));
    return defined({
      state: 'awake',
      isIdle: isWhole ? this.#idle.awake(residency, nowMs) : this.#idle.unknown(),
      gts,
      monitor,
      power: this.#energy.readings(monitor.energies, nowMs),
      vfProfiles: described.vfProfiles,
      throttle,
      ...this.#survivability(described.names),
      isDowngraded: described.isDowngraded,
      pcie,
      profile: described.profile,
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
    const names = this.#names();
    const has = names ?? new Set<string>();
    const profile = has.has('sriov_admin') ? readProfile(files, 'sriov_admin/pf/profile') : undefined;
    const described: Described = {
      names,
      gts: findGts(files, this.place, has),
      monitors: findCardMonitors(files),
      vfProfiles: has.has('sriov_admin') ? this.#vfProfiles(files) : new Map(),
      ...(profile !== undefined && { profile }),
      ...downgradeOf(files, has),
      problems: [],
    };
    this.#readFacts(files, has, described.gts);
    this.#described = { ...described, problems: files.problems };
    this.#describedAtMs = pace.nowMs;
    return this.#described;
  }

  #names(): ReadonlySet<string> | undefined {
    const { names } = this.#host.sys.listing(this.place.directory);
    return names === undefined ? undefined : new Set(names);
  }

  /** The kernel numbers virtual functions from 1 here, and from 0 in the links. */
  #vfProfiles(files: DeviceFiles): ReadonlyMap<number, VfProfile> {
    const numbers = files.names('sriov_admin').flatMap((name) => /^vf([1-9]\d{0,3})$/.exec(name)?.[1] ?? []);
    return new Map(
      numbers.flatMap((number): [number, VfProfile][] => {
        // Only a function that is enabled has the link to its device.
        if (this.#host.sys.link(`${files.directory}/sriov_admin/vf${number}/device`) === undefined) return [];
        const profile = readProfile(files, `sriov_admin/vf${number}/profile`);
        return profile === undefined ? [] : [[Number(number) - 1, profile]];
      }),
    );
  }

  #readFacts(files: DeviceFiles, has: ReadonlySet<string>, gts: readonly Gt[]): void {
    const { sys } = this.#host;
    const { address, minorDirectory } = this.place;
    const ids = idsInUevent(sys, files.directory);
    const id = (file: 'vendor' | 'device'): string | undefined => files.text(file)?.toLowerCase() ?? ids[file];
    const version = (file: string): string | undefined => {
      const text = has.has(file) ? files.text(file) : undefined;
      return /^\d{1,5}(?:\.\d{1,5}){0,3}$/.exec(text ?? '')?.[0];
    };
    const count = (file: string): number | undefined => {
      const value = has.has(file) ? files.once(file, parseCount).value : undefined;
      return typeof value === 'number' ? value : undefined;
    };
    const pciPath = pciPathOf(sys, address);
    // A fact that cannot be read now is kept.
    const read = defined({
      numaNode: numaNodeOf(sys, address),
      pciVendor: id('vendor'),
      pciDevice: id('device'),
      pciPath,
      direct: pciPath === this.facts.pciPath ? this.facts.direct : readDirectAccess(sys, address, pciPath),
      fanControl: version('lb_fan_control_version'),
      voltageRegulator: version('lb_voltage_regulator_version'),
      memoryTotal: memoryTotal(files, minorDirectory, gts),
      functions: count('sriov_numvfs'),
      functionsMax: count('sriov_totalvfs'),
      engines: enginesOf(files, minorDirectory, gts),
    });
    this.facts = { ...this.facts, ...read };
  }
}

const INTEL = '0x8086';

function readGt(files: DeviceFiles, gt: Gt): GtSample {
  const hertz = (file: string | undefined): number | undefined => (file === undefined ? undefined : files.live(file, parseMegahertz).value);
  const [actual, requested, most, min, max] = [gt.actual, gt.requested, gt.most, gt.limits.min, gt.limits.max].map(hertz);
  const idle = gt.idle === undefined ? undefined : files.live(gt.idle, parseCount).value;
  return defined({
    gt,
    actual,
    requested,
    most,
    limits: { ...(min !== undefined && { min }), ...(max !== undefined && { max }) },
    ...(idle !== undefined && { idleSeconds: Number(idle) / 1_000 }),
  });
}

function downgradeOf(files: DeviceFiles, has: ReadonlySet<string>): Pick<Described, 'isDowngraded'> {
  if (!has.has('auto_link_downgrade_status')) return {};
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
function memoryTotal(files: DeviceFiles, minorDirectory: string | undefined, gts: readonly Gt[]): Value | undefined {
  const tiles = [...new Set(gts.flatMap(({ tile }) => tile ?? []))];
  const paths = [
    ...(minorDirectory !== undefined && files.names(minorDirectory).includes('lmem_total_bytes')
      ? [`${minorDirectory}/lmem_total_bytes`]
      : []),
    ...tiles.flatMap((tile) =>
      files.names(`tile${tile}`).includes('physical_vram_size_bytes') ? [`tile${tile}/physical_vram_size_bytes`] : [],
    ),
  ];
  const sizes = paths.map((path) => files.once(path, parseCount).value);
  const sum = sizes.reduce<bigint | undefined>(
    (all, size) => (all === undefined || size === undefined ? undefined : all + BigInt(size)),
    0n,
  );
  return sum === undefined || sum === 0n || sum > BigInt(Number.MAX_SAFE_INTEGER) ? undefined : Number(sum);
}
