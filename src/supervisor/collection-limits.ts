import type { Collection, DeviceRead, DeviceReport, Problem } from '../model/collection.ts';
import type { Device } from '../model/device.ts';
import { matchesAny } from '../model/excluded.ts';

/** Limits for one collection of a family. The memory limit of the shipped manifest holds a family at its limits. */
export interface CollectionLimits {
  readonly devices: number;
  /** Readings, findings and problems of all devices together. */
  readonly entries: number;
  /** Processes of one device. */
  readonly processes: number;
}

export const COLLECTION_LIMITS: CollectionLimits = { devices: 2_048, entries: 50_000, processes: 4_096 };

/**
 * Leaves out what exceeds the limits, and reports it as one problem. Nothing is cut in the middle: a device whose readings and findings do
 * not fit counts as not read, and a list of processes that does not fit is unknown. Devices beyond the limit may exist, so the listing
 * is then partial.
 */
export function limitCollection(collection: Collection, limits: CollectionLimits = COLLECTION_LIMITS): Collection {
  const { reports, problems, listing } = collection;
  let left = limits.entries;
  let [unread, withoutProcesses] = [0, 0];
  const kept = reports.slice(0, limits.devices).map((report): DeviceReport => {
    const entries = entriesOf(report);
    if (entries > left) {
      unread += 1;
      return { device: report.device };
    }
    left -= entries;
    if ((report.read?.processes?.length ?? 0) <= limits.processes) return report;
    withoutProcesses += 1;
    const { processes: _, hasAllProcesses: __, ...read } = report.read as DeviceRead;
    return { ...report, read };
  });
  const keptProblems = problems.slice(0, left);
  const excess = [
    [reports.length - kept.length, 'devices were left out'],
    [unread, 'devices have too many readings and findings, and count as not read'],
    [withoutProcesses, 'devices have too many processes, which were left out'],
    [problems.length - keptProblems.length, 'problems were left out'],
  ] as const;
  const leftOut = excess.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  if (leftOut.length === 0) return collection;
  const problem: Problem = { code: 'too-many-entries', message: leftOut.join('; ') };
  return {
    ...collection,
    reports: kept,
    problems: [...keptProblems, problem],
    listing: kept.length < reports.length ? 'partial' : listing,
  };
}

const entriesOf = ({ read, outOfBand }: DeviceReport): number =>
  (read?.readings.length ?? 0) + (read?.findings.length ?? 0) + (outOfBand?.readings.length ?? 0) + (outOfBand?.findings.length ?? 0);

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
