import { basename } from 'node:path';
import type { Tree } from '../host/fs/tree.ts';
import { pciAddressOf } from '../host/pci/pci.ts';
import type { Collection } from '../model/collection.ts';
import type { Device } from '../model/device.ts';

/**
 * Removes the reads of devices in whose directories a step hangs, because a partial read is no basis for a verdict. Reports of other
 * sources stay. The collection becomes partial, so that these devices become stale and not missing.
 */
export function leaveOut<R>(collection: Collection<R>, directories: Iterable<string>, sys: Tree): Collection<R> {
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

/** A directory without a device's name, such as that of a hardware monitor, belongs to the PCI function above it. */
function nameIn(directory: string, devices: readonly Device[], sys: Tree): string {
  const name = basename(directory);
  if (devices.some((device) => namesOf(device).includes(name)) || !directory.startsWith(`${sys.root}/`)) return name;
  return pciAddressOf(sys, directory.slice(sys.root.length + 1)) ?? name;
}

function namesOf(device: Device): readonly string[] {
  return device.pciAddress === undefined ? [device.id, ...device.aliases] : [device.id, device.pciAddress, ...device.aliases];
}
