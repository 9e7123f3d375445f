import type { Clock } from '../../host/clock.ts';

const POLL_MS = 1_000;

/** State of one device node of a resource. */
export interface PathState {
  readonly path: string;
  /** False when this process saw the node earlier and the node is absent now. */
  readonly present: boolean;
}

/** Directory access that the search for device nodes needs. Paths are relative to `/dev`. */
export interface DeviceDirectory {
  list(path: string): readonly string[];
  exists(path: string): boolean;
  /** Number of reads that failed because no file descriptor was free. */
  readonly shortages?: number;
}

/** Returns the device nodes that match globs such as `/dev/ttyUSB*`. */
export function findPaths(globs: readonly string[], dev: DeviceDirectory): string[] {
  const found = globs.flatMap((glob) => expand(glob.replace(/^\/dev\//, '').split('/'), '', dev));
  return [...new Set(found)].map((path) => `/dev/${path}`);
}

/** Returns the found nodes, and the known nodes that were not found as absent. Sorted by path only. */
export function mergePaths(known: readonly PathState[], found: readonly string[]): PathState[] {
  const present = new Set(found);
  return [...new Set([...known.map(({ path }) => path), ...found])]
    .sort((a, b) => (a < b ? -1 : 1))
    .map((path) => ({ path, present: present.has(path) }));
}

function expand(segments: readonly string[], parent: string, dev: DeviceDirectory): string[] {
  const [segment, ...rest] = segments;
  if (segment === undefined) return [parent];
  const at = (name: string): string => (parent === '' ? name : `${parent}/${name}`);
  if (!/[*?[]/.test(segment)) return dev.exists(at(segment)) ? expand(rest, at(segment), dev) : [];
  const parts = partsOf(segment);
  return dev.list(parent === '' ? '.' : parent).flatMap((name) => (fits(parts, name) ? expand(rest, at(name), dev) : []));
}

/** Whether a name fits a segment. A star takes more only when what follows it does not fit, and no earlier star then changes, so the time has a bound. */
function fits(parts: readonly SegmentPart[], name: string): boolean {
  let [part, at] = [0, 0];
  let star: { readonly next: number; at: number } | undefined;
  while (at < name.length) {
    const one = parts[part];
    if (one === '*') {
      part += 1;
      star = { next: part, at };
    } else if (one?.test(name[at] as string) === true) {
      part += 1;
      at += 1;
    } else if (star !== undefined) {
      star.at += 1;
      [part, at] = [star.next, star.at];
    } else return false;
  }
  return parts.slice(part).every((rest) => rest === '*');
}

/** A star, or the form of one character. */
type SegmentPart = '*' | RegExp;

function partsOf(segment: string): readonly SegmentPart[] {
  return (segment.match(/\[!?[^\]]+\]|[\s\S]/g) ?? []).map((part): SegmentPart => {
    if (part === '*') return part;
    if (part === '?') return /./;
    if (part.length === 1) return new RegExp(part.replace(/[\\^$.*+?()[\]{}|]/, '\\$&'));
    try {
      return new RegExp(part.replace(/^\[!/, '[^').replace(/\\/g, '\\\\'));
    } catch {
      // The range is reversed, as in `[z-a]`. Such a glob matches nothing, as in the shell.
      return /(?!)/;
    }
  });
}
export interface PathWatchDependencies {
  readonly globs: readonly string[];
  readonly dev: DeviceDirectory;
  readonly clock: Clock;
  /** How long an absent node is kept. Some names, for example those of USB devices, never appear again. */
  readonly retentionMs: number;
}

/** Polls for the device nodes that match the globs, and keeps absent ones for the retention time. */
export class PathWatch {
  readonly #parts: PathWatchDependencies;
  /** Monotonic time at which each node was last seen. */
  readonly #seenMs = new Map<string, number>();
  #paths: readonly PathState[] = [];
  #cancel = (): void => {};

  constructor(parts: PathWatchDependencies) {
    this.#parts = parts;
  }

  start(onChange: () => void): void {
    const poll = (): void => {
      const next = this.#poll();
      const changed = JSON.stringify(next) !== JSON.stringify(this.#paths);
      this.#paths = next;
      this.#cancel = this.#parts.clock.after(POLL_MS, poll);
      if (changed) onChange();
    };
    poll();
  }

  paths(): readonly PathState[] {
    return this.#paths;
  }

  stop(): void {
    this.#cancel();
  }

  #poll(): readonly PathState[] {
    const { globs, dev, clock, retentionMs } = this.#parts;
    const before = dev.shortages;
    const found = findPaths(globs, dev);
    // A failed read does not prove that a node is absent.
    if (dev.shortages !== before) return this.#paths;
    const now = clock.monotonic();
    for (const path of found) this.#seenMs.set(path, now);
    for (const [path, seenMs] of this.#seenMs) if (now - seenMs >= retentionMs) this.#seenMs.delete(path);
    return mergePaths(
      this.#paths.filter(({ path }) => this.#seenMs.has(path)),
      found,
    );
  }
}
