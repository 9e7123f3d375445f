import { basename, dirname } from 'node:path';
import type { Clock } from '../../host/clock.ts';
import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { isPciAddress } from '../../host/pci/pci.ts';
import type { Problem } from '../../model/collection.ts';
import { type Millis, seconds } from '../../model/duration.ts';
import { booleanOption, type OptionValues, pacedOption } from '../../model/options.ts';
import { DeviceFiles, type DriverErrors } from '../kit/device-files.ts';
import { isDue, type Pace, Pacer } from '../kit/pace.ts';
import { CredibleLimits } from '../kit/temperature.ts';

export const options = {
  /** Readings of board controllers: each read costs a bus transfer or a message to firmware. */
  'sensor-interval': pacedOption('refresh.slow', seconds(30)),
  'strict-port-errors': booleanOption(
    false,
    'Make MMIO timeouts and malformed packets fatal for a port; the usual cause is a fault of the loaded accelerator',
  ),
};

export type FpgaOptions = OptionValues<typeof options>;

interface CachedValue {
  readonly value: unknown;
  readonly problems: readonly Problem[];
  readonly atMs: number;
  readonly forMs: number;
}

/**
 * State of a probe that is kept between reads. All keys begin with the name of a device, so the hardware limits the size. A device
 * that returns after a removal keeps its counters.
 */
export class ProbeMemory {
  readonly limits = new CredibleLimits();
  readonly #clock: Clock;
  readonly #pacer = new Pacer();
  #pace: Pace;
  readonly #kept = new Map<string, CachedValue>();
  readonly #levels = new Map<string, boolean>();
  readonly #names = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#pace = { nowMs: clock.monotonic(), graceMs: 0 };
  }

  /** Must be called at the begin of each collection. */
  begin(): void {
    this.#pace = this.#pacer.next(this.#clock.monotonic());
  }

  /** Limits expensive reads: returns what is kept of a key while it is younger than `forMs` of it, otherwise reads again. */
  atMostEvery(key: string, read: () => Omit<CachedValue, 'atMs'>): CachedValue {
    const kept = this.#kept.get(key);
    if (kept !== undefined && !isDue(kept.atMs, kept.forMs, this.#pace)) return kept;
    const fresh = { ...read(), atMs: this.#pace.nowMs };
    this.#kept.set(key, fresh);
    return fresh;
  }

  /** Monotonic time of the read that {@link atMostEvery} returned for a key; undefined when this collection made it. */
  readMs(key: string): number | undefined {
    const atMs = this.#kept.get(key)?.atMs;
    return atMs === this.#pace.nowMs ? undefined : atMs;
  }

  /** Drops the result that {@link atMostEvery} keeps for a key. */
  forget(key: string): void {
    this.#kept.delete(key);
  }

  /** Says whether a name differs from the name at the last call. */
  isOther(key: string, name: string): boolean {
    const before = this.#names.get(key);
    this.#names.set(key, name);
    return before !== undefined && before !== name;
  }

  /** Counts how often a name changed between two calls. Undefined means "unknown now" and is no change. */
  changes(key: string, name: string | undefined): number {
    const before = this.#names.get(key);
    if (name !== undefined) this.#names.set(key, name);
    const hasChanged = before !== undefined && name !== undefined && before !== name;
    const count = (this.#counts.get(key) ?? 0) + Number(hasChanged);
    this.#counts.set(key, count);
    return count;
  }

  /** Level with hysteresis: true from `on`, false below `off`, unchanged in between; undefined when there is no earlier level. */
  isAbove(key: string, value: number, on: number, off: number): boolean | undefined {
    const isOn = value >= on ? true : value < off ? false : this.#levels.get(key);
    if (isOn !== undefined) this.#levels.set(key, isOn);
    return isOn;
  }

  /** Returns the number of consecutive failures, including this one. */
  failuresInARow(key: string, failed: boolean): number {
    const count = failed ? (this.#counts.get(key) ?? 0) + 1 : 0;
    this.#counts.set(key, count);
    return count;
  }

  /** Returns the given name; if it is undefined, the last known name. */
  lastKnown(key: string, name: string | undefined): string | undefined {
    if (name !== undefined) this.#names.set(key, name);
    return name ?? this.#names.get(key);
  }
}

/** Returns the names in the directory that match, sorted by the numbers in them. */
export const numbered = (files: DeviceFiles, pattern: RegExp): readonly string[] =>
  files
    .names()
    .filter((name) => pattern.test(name))
    .sort(byNumbers);

/**
 * Orders names by the numbers in them: `dfl-fme.2` comes before `dfl-fme.10`. Comparison by locale gives the same order, but loads
 * some MiB of locale data into memory.
 */
export function byNumbers(a: string, b: string): number {
  const [left, right] = [a.split(/(\d+)/), b.split(/(\d+)/)];
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    const [one, other] = [left[at] as string, right[at] as string];
    // Text and digits alternate, so the digits are at odd indices in both names.
    const difference = at % 2 === 1 ? Number(one) - Number(other) : byUnits(one, other);
    if (difference !== 0) return difference;
  }
  return left.length - right.length || byUnits(a, b);
}

/** Orders texts by UTF-16 code units. */
export function byUnits(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** A class device and its PCI function. `address` is absent for boards that are not on PCI. */
export interface Placed {
  /** `hwmon3`, `fpga0`, `br0`. The numbers follow the probe order. */
  readonly name: string;
  /** Path below `bus/pci/devices/<address>`, so that a hanging read counts for the board; otherwise a path in the class directory. */
  readonly path: string;
  readonly address?: string;
  /** Device that registered the class device: `firmware:zynqmp-firmware:pcap`, `dfl-fme-mgr.0`. */
  readonly owner?: string;
}

/** Input and shared state of one collection. */
export interface Survey {
  readonly host: Host;
  readonly options: FpgaOptions;
  readonly memory: ProbeMemory;
  readonly problems: Problem[];
  readonly monitors: readonly Placed[];
  readonly managers: readonly Placed[];
  readonly uploads: readonly Placed[];
}

export function makeSurvey(host: Host, options: FpgaOptions, memory: ProbeMemory): Survey {
  const { sys } = host;
  return {
    host,
    options,
    memory,
    problems: [],
    monitors: placedIn(sys, 'class/hwmon'),
    managers: placedIn(sys, 'class/fpga_manager'),
    uploads: placedIn(sys, 'class/firmware'),
  };
}

/** What the drivers mean by an error. XRT refuses `kdsstat` without an image: src/runtime_src/core/pcie/driver/linux/xocl/userpf/xocl_sysfs.c. */
const FPGA_ERRORS: DriverErrors = { EINVAL: 'absent' };

/** Files of a board or a port in one directory. Their problems go to the survey. */
export function filesOf({ host, problems }: Survey, directory: string, device: string): DeviceFiles {
  return new DeviceFiles(host.sys, directory, { device, problems, errors: FPGA_ERRORS });
}

/**
 * Limits expensive reads. While the last result is younger than `maxAgeMs`, it returns that result and reports its problems again.
 * A result that is undefined or has problems is read again at the next sweep of the sensors.
 */
export function atMostEvery<T>(survey: Survey, key: string, maxAgeMs: Millis, read: (survey: Survey) => T): T {
  const kept = survey.memory.atMostEvery(key, () => {
    const problems: Problem[] = [];
    const value = read({ ...survey, problems });
    const isComplete = value !== undefined && problems.length === 0;
    return { value, problems, forMs: isComplete ? maxAgeMs : Math.min(maxAgeMs, survey.options['sensor-interval']) };
  });
  survey.problems.push(...kept.problems);
  return kept.value as T;
}

/** Class directory of the regions of DFL. */
export const REGIONS = 'class/fpga_region';

/** Returns all entries of a class directory in the order of their numbers. A plain file among them has no PCI function. */
export function placedIn(sys: Tree, directory: string): readonly Placed[] {
  return [...sys.list(directory)].sort(byNumbers).flatMap((name) => {
    const placed = place(sys, `${directory}/${name}`);
    return placed === undefined ? [] : [placed];
  });
}

/** Finds the PCI function of a class device: the last address in its real path. */
function place(sys: Tree, path: string): Placed | undefined {
  const real = sys.realpath(path);
  if (real === undefined) return undefined;
  const parts = real.split('/');
  const at = parts.findLastIndex(isPciAddress);
  const owner = basename(dirname(dirname(real)));
  const common = { name: basename(path), ...(owner !== '' && owner !== '.' && { owner }) };
  if (at < 0) return { ...common, path };
  const address = parts[at] as string;
  return { ...common, address, path: ['bus/pci/devices', address, ...parts.slice(at + 1)].join('/') };
}
