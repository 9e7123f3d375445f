import { type NameConflicts, nameConflicts, type Origins } from '../../join/name-conflicts.ts';
import type { DeviceRecord, RecordsByKey } from '../../model/device-record.ts';

/** The devices after the conflicts of names: some have another name, and one that cannot have a name of its own is left out. */
export function withNames(
  known: RecordsByKey,
  origins: Origins = new Map(),
): { readonly named: RecordsByKey; readonly conflicts: NameConflicts } {
  const conflicts = nameConflicts(
    Array.from(known.values(), ({ device }) => device),
    origins,
  );
  const { changed } = conflicts;
  if (changed.size === 0) return { named: known, conflicts };
  const named = new Map(
    [...known].flatMap(([key, one]): [string, DeviceRecord][] => {
      const device = changed.has(key) ? changed.get(key) : one.device;
      return device === undefined ? [] : [[key, { ...one, device }]];
    }),
  );
  return { named, conflicts };
}
