import type { Clock } from '../../host/clock.ts';

const LOOK_MS = 1_000;

/** One device node that a resource is made of. */
export interface PathState {
  readonly path: string;
  /** False when it was there earlier in this process's life and is not now. */
  readonly present: boolean;
}

/** The part of a directory tree that looking for device nodes needs; paths are relative to `/dev`. */
export interface DeviceDirectory {
  list(path: string): readonly string[];
  exists(path: string): boolean;
  /** Grows whenever something could not be looked into for want of descriptors. */
  readonly shortages?: number;
}

/** Device nodes that match globs such as `/dev/ttyUSB*`, sorted. */
export function findPaths(globs: readonly string[], dev: DeviceDirectory): string[] {
  const found = globs.flatMap((glob) => expand(glob.replace(/^\/dev\//, '').split('/'), '', dev));
  return [...new Set(found)].map((path) => `/dev/${path}`);
}

/** The nodes found now and, as absent, those that were known before. Order: ids alone. */
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
  const pattern = segmentPattern(segment);
  return dev.list(parent === '' ? '.' : parent).flatMap((name) => (pattern.test(name) ? expand(rest, at(name), dev) : []));
}

function segmentPattern(segment: string): RegExp {
  const source = segment.replace(/\[!?[^\]]+\]|[*?]|[^*?]/g, (part) => {
    if (part === '*') return '.*';
    if (part === '?') return '.';
    if (part.length > 1) return part.replace(/^\[!/, '[^').replace(/\\/g, '\\\\');
    return part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  });
  try {
    return new RegExp(`^${source}$`);
  } catch {
    // A range whose end comes before its begin.
    return NOTHING;
  }
}

/** What the shell takes such a glob for. */
const NOTHING = /(?!)/;

export interface PathWatchParts {
  readonly globs: readonly string[];
  readonly dev: DeviceDirectory;
  readonly clock: Clock;
  /** How long a node that went away is remembered. Some names, those of USB devices for one, never come back. */
  readonly retentionMs: number;
}

/** Looks again and again for the device nodes that some globs name, and remembers those that went away. */
export class PathWatch {
  readonly #parts: PathWatchParts;
  /** When a node that is not there was last seen, by the monotonic clock. */
  readonly #seenMs = new Map<string, number>();
  #paths: readonly PathState[] = [];
  #cancel = (): void => {};

  constructor(parts: PathWatchParts) {
    this.#parts = parts;
  }

  start(onChange: () => void): void {
    const look = (): void => {
      const next = this.#look();
      const changed = JSON.stringify(next) !== JSON.stringify(this.#paths);
      this.#paths = next;
      this.#cancel = this.#parts.clock.after(LOOK_MS, look);
      if (changed) onChange();
    };
    look();
  }

  paths(): readonly PathState[] {
    return this.#paths;
  }

  stop(): void {
    this.#cancel();
  }

  #look(): readonly PathState[] {
    const { globs, dev, clock, retentionMs } = this.#parts;
    const before = dev.shortages;
    const found = findPaths(globs, dev);
    // What could not be looked into is not gone.
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
