import type { MetricSpec } from '../../model/metric.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { type FileRow, listedRows } from '../kit/file-rows.ts';
import type { ReadingSet } from '../kit/reading-set.ts';
import { parseCount, plainText } from '../kit/text.ts';
import { metrics } from './metrics.ts';

/** A part of a GPU with its own clock: a tile, or its media engines. */
export interface Gt {
  /** `gt0`. */
  readonly name: string;
  /** Absent on i915, which does not tell. */
  readonly tile?: number;
  /** Absent when the driver does not report it. */
  readonly type?: 'render' | 'media' | undefined;
  /** Its values, in files below the directory of the card. */
  readonly rows: readonly FileRow[];
  readonly throttle?: ThrottleFiles;
}

interface ThrottleFiles {
  /** All reasons in one line. */
  readonly all: string | undefined;
  /** Zero: no reason holds. */
  readonly status: string | undefined;
  /** File of each reason; any value but zero means that it holds. */
  readonly reasons: Readonly<Record<string, string>>;
}

/** Most GTs of a card, and most reasons of a GT, that are read. The largest card has four GTs. */
const MOST_GTS = 16;
const MOST_REASONS = 32;

/** Where the files of a GT are. `i915`: in its directory. `old`: old kernels have those of the first GT in the directory of the card. */
type Place = 'xe' | 'i915' | 'old';

/** A value of a GT, which is its first label, and the file of it in each place. */
type GtRow = Omit<FileRow, 'file' | 'metric'> & Readonly<Record<Place, string>> & { readonly metric: MetricSpec };

const clock = (metric: MetricSpec, name: string, limit?: string): GtRow => ({
  metric,
  parse: parseMegahertz,
  ...(limit !== undefined && { labels: { limit } }),
  xe: `freq0/${name.toLowerCase()}_freq`,
  i915: `rps_${name}_freq_mhz`,
  old: `gt_${name}_freq_mhz`,
});

const ROWS: readonly GtRow[] = [
  clock(metrics.clock, 'act'),
  clock(metrics.requestedClock, 'cur'),
  clock(metrics.clockMax, 'RP0'),
  clock(metrics.clockLimit, 'min', 'min'),
  clock(metrics.clockLimit, 'max', 'max'),
  { metric: metrics.gtIdle, scale: 1e-3, xe: 'gtidle/idle_residency_ms', i915: 'rc6_residency_ms', old: 'power/rc6_residency_ms' },
];

function rowsOf(files: DeviceFiles, place: Place, directory: string, gt: string): readonly FileRow[] {
  const rows = ROWS.map(({ metric, parse, scale, labels, [place]: file }) => {
    return { file, metric, parse, scale, labels: { [metric.labels[0] as string]: gt, ...labels } };
  });
  return listedRows(files, rows, directory);
}

/** Finds the GTs by the names of directories and files. It opens only the file with the type of a GT. */
export function findGts(files: DeviceFiles, minorDirectory: string | undefined): readonly Gt[] {
  const tiles = files.names().filter((name) => /^tile\d+$/.test(name));
  const ofXe = tiles.sort().flatMap((tile) => gtNames(files, tile).map((name) => xeGt(files, tile, name)));
  const ofI915 = (at: string): readonly Gt[] => {
    const gts = gtNames(files, `${at}/gt`).map((name): Gt => {
      const directory = `${at}/gt/${name}`;
      return { name, rows: rowsOf(files, 'i915', directory, name), ...throttleFiles(files, directory, 'throttle_reason_') };
    });
    if (gts.length > 0 || !files.has(`${at}/gt_cur_freq_mhz`)) return gts;
    return [{ name: 'gt0', rows: rowsOf(files, 'old', at, 'gt0') }];
  };
  return (ofXe.length > 0 || minorDirectory === undefined ? ofXe : ofI915(minorDirectory)).slice(0, MOST_GTS);
}

const gtNames = (files: DeviceFiles, directory: string): readonly string[] =>
  files.names(directory).filter((name) => /^gt\d{1,3}$/.test(name));

const TYPES = { rc: 'render', mc: 'media' } as const;

function xeGt(files: DeviceFiles, tile: string, name: string): Gt {
  const directory = `${tile}/${name}`;
  return {
    name,
    tile: Number(tile.slice('tile'.length)),
    type: TYPES[/-(rc|mc)$/.exec(files.text(`${directory}/gtidle/name`) ?? '')?.[1] as keyof typeof TYPES],
    rows: rowsOf(files, 'xe', directory, name),
    ...throttleFiles(files, `${directory}/freq0/throttle`, 'reason_', 'status'),
  };
}

function throttleFiles(files: DeviceFiles, directory: string, prefix: string, status = `${prefix}status`): Pick<Gt, 'throttle'> {
  const names = files.names(directory).filter((name) => name !== status && name.startsWith(prefix) && isReason(name.slice(prefix.length)));
  const path = (name: string): string => `${directory}/${name}`;
  const [all, summary] = ['reasons', status].map((name) => (files.has(path(name)) ? path(name) : undefined));
  if (all === undefined && summary === undefined && names.length === 0) return {};
  const reasons = Object.fromEntries(names.slice(0, MOST_REASONS).map((name) => [name.slice(prefix.length), path(name)]));
  return { throttle: { all, status: summary, reasons } };
}

const isReason = (name: string): boolean => /^[a-z0-9_]{1,32}$/.test(name);

/** Frequency in MHz as hertz; undefined for other text. */
export function parseMegahertz(text: string | undefined): number | undefined {
  const value = parseCount(text);
  return typeof value === 'number' && value <= MOST_MEGAHERTZ ? value * 1e6 : undefined;
}

/** No clock of a GPU is faster. Some kernels print garbage, such as 627200 MHz for an efficient frequency. */
const MOST_MEGAHERTZ = 20_000;

/** Whether a reason holds: `0`, or the mask of a register. Undefined for other text. */
export function parseMask(text: string | undefined): boolean | undefined {
  const digits = /^(?:0x)?([0-9a-f]{1,16})$/i.exec(plainText(text ?? ''))?.[1];
  return digits === undefined ? undefined : !/^0+$/.test(digits);
}

/** Names of the reasons in one line, separated by blanks; `none` for no reason. Undefined for other text. */
export function parseReasons(text: string | undefined): readonly string[] | undefined {
  const line = plainText(text ?? '');
  if (line === 'none') return [];
  const words = line.split(/[ \t]+/);
  return words.length <= MOST_REASONS && words.every((word) => isReason(word) && /^[a-z]/.test(word)) ? [...new Set(words)] : undefined;
}

/** Throttle reasons of all GTs of a card in one read. */
export interface ThrottleSample {
  /** GTs that each reason holds on; empty for a reason that holds nowhere. */
  readonly reasons: ReadonlyMap<string, readonly string[]>;
  /** GTs whose reasons could not be read. */
  readonly unknown: readonly string[];
}

/** Reads the throttle reasons: one file of each GT unless a reason holds. Undefined when no GT has such files. */
export function readThrottle(readings: ReadingSet, files: DeviceFiles, gts: readonly Gt[]): ThrottleSample | undefined {
  const reasons = new Map<string, string[]>();
  const unknown: string[] = [];
  let hasFiles = false;
  for (const { name, throttle } of gts) {
    if (throttle === undefined) continue;
    hasFiles = true;
    for (const reason of Object.keys(throttle.reasons)) if (!reasons.has(reason)) reasons.set(reason, []);
    const held = heldReasons(files, throttle);
    if (held === undefined) unknown.push(name);
    for (const reason of held ?? []) {
      // The kernel names the reasons; a new one is taken as it is, up to a bound.
      if (reasons.size < MOST_REASONS || reasons.has(reason)) reasons.set(reason, [...(reasons.get(reason) ?? []), name]);
    }
  }
  for (const [reason, held] of reasons) {
    // A reason that holds nowhere is only known to be 0 when every GT was read.
    if (held.length > 0 || unknown.length === 0) readings.add(metrics.throttled, held.length > 0 ? 1 : 0, { reason });
  }
  return hasFiles ? { reasons, unknown } : undefined;
}

function heldReasons(files: DeviceFiles, { all, status, reasons }: ThrottleFiles): readonly string[] | undefined {
  // One line is one moment. When it cannot be read, the other files of another moment must not deny a reason.
  if (all !== undefined) return files.live(all, parseReasons).value;
  if (status !== undefined) {
    const isHeld = files.live(status, parseMask).value;
    if (isHeld === undefined) return undefined;
    if (!isHeld) return [];
  }
  const each = Object.entries(reasons).map(([reason, file]) => ({ reason, isHeld: files.live(file, parseMask).value }));
  if (each.some(({ isHeld }) => isHeld === undefined)) return undefined;
  const held = each.filter(({ isHeld }) => isHeld === true).map(({ reason }) => reason);
  // The status holds and no reason does: the reason ended between the reads, or this kernel has no file for it.
  return held.length === 0 && each.length === 0 ? ['unspecified'] : held;
}

/** Share of a time in the power state C6 from which on nothing worked. A look of the agent itself wakes the card for a moment. */
const IDLE_SHARE = 0.99;
/** Shortest time between two reads that tells a share. The files count whole milliseconds. */
const SHORTEST_IDLE_MS = 1_000;

type Before = { readonly residencyMs: ReadonlyMap<string, number>; readonly atMs: number } | { readonly activeMs: number | bigint };

/** Says when a card certainly did nothing between two reads. It never says that a card worked, because a GT outside C6 may be idle. */
export class IdleMeter {
  #before: Before | undefined;

  /** `residencyMs`: time in C6 of every GT. Returns true when all of them were in C6 since the last read. */
  awake(residencyMs: ReadonlyMap<string, number>, nowMs: number): boolean {
    const before = this.#before;
    this.#before = { residencyMs, atMs: nowMs };
    if (before === undefined || !('atMs' in before)) return false;
    const elapsedMs = nowMs - before.atMs;
    if (elapsedMs < SHORTEST_IDLE_MS) return false;
    return [...residencyMs].every(([gt, now]) => {
      const start = before.residencyMs.get(gt);
      return start !== undefined && now - start >= IDLE_SHARE * elapsedMs;
    });
  }

  /** `activeMs`: time that the card was awake since the driver was loaded. Returns true when the card slept since the last read. */
  asleep(activeMs: number | bigint | undefined): boolean {
    const before = this.#before;
    this.#before = activeMs === undefined ? undefined : { activeMs };
    return before !== undefined && 'activeMs' in before && before.activeMs === activeMs;
  }

  /** No value shows it. */
  unknown(): boolean {
    this.#before = undefined;
    return false;
  }
}
