import { parseJson } from '../../host/documents/json.ts';
import type { Bounds, DocumentKind } from '../../host/documents/kind.ts';
import type { CheckpointEntry } from '../../model/pod-resources.ts';

/** The checkpoint of 1,000 pods with 16 devices each has less than 4 MiB and 150,000 entries of JSON. */
const BOUNDS: Bounds = { mostBytes: 8 * 1_048_576, mostEntries: 250_000, mostDepth: 16 };
/** Entries of containers that are used. */
export const MOST_ENTRIES = 20_000;

/** A checkpoint of the kubelet. */
export interface Checkpoint {
  /** {@link MOST_ENTRIES} at most. Undefined: the text is truncated or no checkpoint. */
  readonly entries: readonly CheckpointEntry[] | undefined;
  /** Number of entries in the file. */
  readonly count: number;
}

export const checkpointKind: DocumentKind<Checkpoint> = {
  bounds: BOUNDS,
  parse(text) {
    const entries = parseCheckpoint(text);
    const value = { entries: entries?.slice(0, MOST_ENTRIES), count: entries?.length ?? 0 };
    return { value, isComplete: entries !== undefined };
  },
};

/**
 * Parses `kubelet_internal_checkpoint`, the only file that maps pod UIDs to device ids. Returns undefined when the text is truncated
 * or not a checkpoint. Throws `TooComplex`. Skips invalid entries. The checksum covers a dump in a Go-specific format and is not checked.
 */
export function parseCheckpoint(text: string): readonly CheckpointEntry[] | undefined {
  const data = field(parsed(text), 'Data');
  const entries = field(data, 'PodDeviceEntries');
  if (entries === null) return [];
  if (!Array.isArray(entries)) return undefined;
  return entries
    .map(entryFrom)
    .filter((entry) => entry !== undefined)
    .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
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

function parsed(text: string): unknown {
  try {
    return parseJson(text, BOUNDS);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
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
