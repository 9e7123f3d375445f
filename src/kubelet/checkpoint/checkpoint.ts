import type { Clock } from '../../host/clock.ts';
import { OutsideFile, type OutsideFileParts } from '../../host/fs/outside-file.ts';
import type { CheckpointEntry, CheckpointReason } from '../../model/pod-resources.ts';

/**
 * Parses `kubelet_internal_checkpoint`, the only file that maps pod UIDs to device ids. Returns undefined when the text is truncated
 * or not a checkpoint. Skips invalid entries. The checksum covers a dump in a Go-specific format and is not checked.
 */
export function parseCheckpoint(text: string): readonly CheckpointEntry[] | undefined {
  const data = field(parseJson(text), 'Data');
  const entries = field(data, 'PodDeviceEntries');
  if (entries === null) return [];
  if (!Array.isArray(entries)) return undefined;
  return entries
    .map(entryFrom)
    .filter((entry) => entry !== undefined)
    .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

/** The checkpoint of 1,000 pods with 16 devices each has less than 4 MiB. */
export const CHECKPOINT_LIMITS = { mostBytes: 8 * 1_048_576, timeoutMs: 2_000 };
const MOST_ENTRIES = 20_000;

export interface CheckpointRead {
  readonly entries: readonly CheckpointEntry[];
  /** Present when the file could not be used. Before the first registration of a plugin it is absent, which is no problem. */
  readonly problem?: { readonly code: CheckpointReason; readonly message: string };
}

const NOTHING: CheckpointRead = { entries: [] };

/** Reads the kubelet's checkpoint, whatever stands at its path. */
export class CheckpointReader {
  readonly #path: string;
  readonly #file: OutsideFile;

  /** With an empty path there is nothing to read. */
  constructor(path: string, clock: Clock, parts?: OutsideFileParts) {
    this.#path = path;
    this.#file = new OutsideFile(path, CHECKPOINT_LIMITS, clock, parts);
  }

  /** True while a read has not returned. */
  get isPending(): boolean {
    return this.#file.isPending;
  }

  /** Never rejects. */
  async read(): Promise<CheckpointRead> {
    if (this.#path === '') return NOTHING;
    const read = await this.#file.read();
    if (read.problem === 'absent') return NOTHING;
    if (read.problem !== undefined) return { entries: [], problem: { code: read.problem, message: read.message } };
    const entries = parseCheckpoint(read.text);
    if (entries === undefined)
      return { entries: [], problem: { code: 'not-a-checkpoint', message: `${this.#path} is not a device checkpoint` } };
    if (entries.length <= MOST_ENTRIES) return { entries };
    const tooMany = `${this.#path} has ${entries.length} entries; the first ${MOST_ENTRIES} are used`;
    return { entries: entries.slice(0, MOST_ENTRIES), problem: { code: 'too-many-entries', message: tooMany } };
  }
}

function entryFrom(value: unknown): CheckpointEntry | undefined {
  const [podUid, container, resource] = ['PodUID', 'ContainerName', 'ResourceName'].map((name) => field(value, name));
  const deviceIds = deviceIdsFrom(field(value, 'DeviceIDs'));
  if (!isName(podUid) || !isName(container) || !isName(resource) || deviceIds.length === 0) return undefined;
  return { podUid, container, resource, deviceIds };
}

/** Since 1.20 the ids are keyed by NUMA node, and a device with several nodes is listed under each; before, they are a plain list. */
function deviceIdsFrom(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const ids = Array.isArray(value) ? value : Object.values(value).flat();
  return [...new Set(ids.filter(isName))].sort();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function sortKey(entry: CheckpointEntry): string {
  return `${entry.podUid}\u0000${entry.container}\u0000${entry.resource}`;
}
