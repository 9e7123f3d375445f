import { basename } from 'node:path';
import type { Collection } from '../model/collection.ts';
import type { Device } from '../model/device.ts';

/**
 * A collection without the devices in whose directories a read hangs: what little could be read of them is no basis for a
 * judgement. It is then not complete, so that they grow stale instead of missing.
 */
export function leaveOut(collection: Collection, directories: readonly string[]): Collection {
  const names = new Set(directories.map((path) => basename(path)));
  if (names.size === 0) return collection;
  const reports = collection.reports.filter((report) => !namesOf(report.device).some((name) => names.has(name)));
  return { ...collection, reports, complete: false };
}

function namesOf(device: Device): readonly string[] {
  return device.pciAddress === undefined ? [device.id, ...device.aliases] : [device.id, device.pciAddress, ...device.aliases];
}
