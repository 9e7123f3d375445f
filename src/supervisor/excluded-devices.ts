import type { Collection } from '../model/collection.ts';
import type { Device } from '../model/device.ts';
import { matchesAny } from '../model/excluded.ts';

/** Drops the devices that the option `device.exclude` leaves out, their parts, and the problems of both. */
export function withoutExcluded(collection: Collection, patterns: unknown): Collection {
  if (!Array.isArray(patterns) || patterns.length === 0) return collection;
  const parents = new Map(collection.reports.map(({ device }) => [device.id, device.parent]));
  const isOut = (id: Device['id'] | undefined): boolean => id !== undefined && (matchesAny(patterns, id) || isOut(parents.get(id)));
  return {
    ...collection,
    reports: collection.reports.filter(({ device }) => !isOut(device.id)),
    problems: collection.problems.filter(({ device }) => !isOut(device)),
  };
}
