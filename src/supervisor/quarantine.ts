import { basename } from 'node:path';
import type { Tree } from '../host/fs/tree.ts';
import { pciAddressOf } from '../host/pci/pci.ts';
import type { Collection } from '../model/collection.ts';
import type { Device } from '../model/device.ts';

/**
 * A collection without what was read of devices in whose directories a step hangs: what little could be read of them is no basis for a
 * judgement. What other sources told of them stays. The collection is then not complete, so that they grow stale instead of missing.
 */
export function leaveOut(collection: Collection, directories: Iterable<string>, sys: Tree): Collection {
  const all = [...directories];
  if (all.length === 0) return collection;
  const hung = new Set(
    devicesIn(
      all,
      collection.reports.map(({ device }) => device),
      sys,
    ),
  );
  const reports = collection.reports.map((report) => {
    if (!hung.has(report.device)) return report;
    const { read: _, ...rest } = report;
    return rest;
  });
  return { ...collection, reports, listing: 'partial' };
}

/** The devices that the directories belong to. */
export function devicesIn(directories: readonly string[], devices: readonly Device[], sys: Tree): readonly Device[] {
  const names = new Set(directories.map((directory) => nameIn(directory, devices, sys)));
  return devices.filter((device) => namesOf(device).some((name) => names.has(name)));
}

/** A directory that has no device's name, such as that of a hardware monitor, belongs to the PCI function that it lies below. */
function nameIn(directory: string, devices: readonly Device[], sys: Tree): string {
  const name = basename(directory);
  if (devices.some((device) => namesOf(device).includes(name)) || !directory.startsWith(`${sys.root}/`)) return name;
  return pciAddressOf(sys, directory.slice(sys.root.length + 1)) ?? name;
}

function namesOf(device: Device): readonly string[] {
  return device.pciAddress === undefined ? [device.id, ...device.aliases] : [device.id, device.pciAddress, ...device.aliases];
}
