import { defined } from '../../model/defined.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { parseCount, plainText } from '../kit/text.ts';
import type { CardPlace } from './discover.ts';

/** Files of one GT, relative to the directory of the card. A GT is a part of a GPU with its own clock: a tile, or its media engines. */
export interface Gt {
  /** `gt0`. */
  readonly name: string;
  /** Absent on i915, which does not tell. */
  readonly tile?: number;
  /** Absent when the driver does not report it. */
  readonly type?: 'render' | 'media';
  readonly actual?: string;
  readonly requested?: string;
  /** Files of limits in MHz. */
  readonly most?: string;
  readonly limits: Readonly<Partial<Record<'min' | 'max', string>>>;
  /** Time without work in the power state C6, in milliseconds. */
  readonly idle?: string;
  readonly throttle?: ThrottleFiles;
}

interface ThrottleFiles {
  /** All reasons in one line. */
  readonly all?: string;
  /** Zero: no reason holds. */
  readonly status?: string;
  /** File of each reason; any value but zero means that it holds. */
  readonly reasons: Readonly<Record<string, string>>;
}

/** Most GTs of a card, and most reasons of a GT, that are read. The largest card has four GTs. */
const MOST_GTS = 16;
const MOST_REASONS = 32;

/** Finds the GTs by the names of directories and files. It opens only the file with the type of a GT. */
export function findGts(files: DeviceFiles, place: CardPlace, names: ReadonlySet<string>): readonly Gt[] {
  const tiles = [...names].filter((name) => /^tile\d+$/.test(name)).sort();
  const ofXe = tiles.flatMap((tile) =>
    gtNames(files, tile).map((gt) => xeGt(files, `${tile}/${gt}`, gt, Number(tile.slice('tile'.length)))),
  );
  return (ofXe.length > 0 ? ofXe : i915Gts(files, place.minorDirectory)).slice(0, MOST_GTS);
}

const gtNames = (files: DeviceFiles, directory: string): readonly string[] =>
  files.names(directory).filter((name) => /^gt\d{1,3}$/.test(name));

function xeGt(files: DeviceFiles, directory: string, name: string, tile: number): Gt {
  const has = namesIn(files, `${directory}/freq0`);
  const idle = namesIn(files, `${directory}/gtidle`);
  const type = /-(rc|mc)$/.exec(files.text(`${directory}/gtidle/name`) ?? '')?.[1];
  const throttle = namesIn(files, `${directory}/freq0/throttle`);
  return {
    name,
    tile,
    ...(type !== undefined && { type: type === 'rc' ? ('render' as const) : ('media' as const) }),
    ...clockFiles(has, { actual: 'act_freq', requested: 'cur_freq', most: 'rp0_freq', min: 'min_freq', max: 'max_freq' }),
    ...(idle.has('idle_residency_ms') && { idle: idle.path('idle_residency_ms') }),
    ...throttleFiles(throttle, { all: 'reasons', status: 'status', prefix: 'reason_' }),
  };
}

/** Old kernels have the files of the first GT in the directory of the card. */
function i915Gts(files: DeviceFiles, minorDirectory: string | undefined): readonly Gt[] {
  if (minorDirectory === undefined) return [];
  const found = gtNames(files, `${minorDirectory}/gt`).map((name): Gt => {
    const has = namesIn(files, `${minorDirectory}/gt/${name}`);
    return {
      name,
      ...clockFiles(has, {
        actual: 'rps_act_freq_mhz',
        requested: 'rps_cur_freq_mhz',
        most: 'rps_RP0_freq_mhz',
        min: 'rps_min_freq_mhz',
        max: 'rps_max_freq_mhz',
      }),
      ...(has.has('rc6_residency_ms') && { idle: has.path('rc6_residency_ms') }),
      ...throttleFiles(has, { status: 'throttle_reason_status', prefix: 'throttle_reason_' }),
    };
  });
  if (found.length > 0) return found;
  const has = namesIn(files, minorDirectory);
  const power = namesIn(files, `${minorDirectory}/power`);
  if (!has.has('gt_cur_freq_mhz')) return [];
  return [
    {
      name: 'gt0',
      ...clockFiles(has, {
        actual: 'gt_act_freq_mhz',
        requested: 'gt_cur_freq_mhz',
        most: 'gt_RP0_freq_mhz',
        min: 'gt_min_freq_mhz',
        max: 'gt_max_freq_mhz',
      }),
      ...(power.has('rc6_residency_ms') && { idle: power.path('rc6_residency_ms') }),
    },
  ];
}

/** Names in one directory. */
interface NamesIn {
  readonly all: readonly string[];
  has(name: string): boolean;
  path(name: string): string;
}

function namesIn(files: DeviceFiles, directory: string): NamesIn {
  const all = files.names(directory);
  const set = new Set(all);
  return { all, has: (name) => set.has(name), path: (name) => `${directory}/${name}` };
}

function clockFiles(
  has: NamesIn,
  names: Readonly<Record<'actual' | 'requested' | 'most' | 'min' | 'max', string>>,
): Pick<Gt, 'actual' | 'requested' | 'most' | 'limits'> {
  const path = (name: string): string | undefined => (has.has(name) ? has.path(name) : undefined);
  const [actual, requested, most, min, max] = [names.actual, names.requested, names.most, names.min, names.max].map(path);
  return defined({ actual, requested, most, limits: { ...(min !== undefined && { min }), ...(max !== undefined && { max }) } });
}

function throttleFiles(
  has: NamesIn,
  { all, status, prefix }: { readonly all?: string; readonly status: string; readonly prefix: string },
): Pick<Gt, 'throttle'> {
  const names = has.all.filter((name) => name !== status && name.startsWith(prefix) && isReason(name.slice(prefix.length)));
  const reasons = Object.fromEntries(names.slice(0, MOST_REASONS).map((name) => [name.slice(prefix.length), has.path(name)]));
  const line = all !== undefined && has.has(all) ? has.path(all) : undefined;
  const summary = has.has(status) ? has.path(status) : undefined;
  if (line === undefined && summary === undefined && names.length === 0) return {};
  return { throttle: { reasons, ...(line !== undefined && { all: line }), ...(summary !== undefined && { status: summary }) } };
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
export function readThrottle(files: DeviceFiles, gts: readonly Gt[]): ThrottleSample | undefined {
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
