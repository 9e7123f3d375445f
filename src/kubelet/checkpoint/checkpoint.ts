import { readFile } from 'node:fs/promises';
import type { CheckpointEntry } from '../../model/pod-resources.ts';

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

/** Returns undefined when the path is empty, or when the file is absent, unreadable or not a checkpoint. */
export async function readCheckpoint(path: string): Promise<readonly CheckpointEntry[] | undefined> {
  if (path === '') return undefined;
  const text = await readFile(path, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : parseCheckpoint(text);
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
