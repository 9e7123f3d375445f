import type { Host } from '../host/host.ts';
import type { Collection } from '../model/collection.ts';
import type { DeviceFamily, Probe } from '../probes/family.ts';

/** One look of the probe, corrected by what the probe cannot know: without descriptors or without sysfs nothing is complete. */
export async function lookOf(probe: Probe, host: Host): Promise<Collection> {
  const shortages = shortagesOf(host);
  const collection = await probe.collect();
  if (shortagesOf(host) !== shortages) {
    const problem = { code: 'descriptors-exhausted', message: 'files cannot be opened: no descriptors are left' };
    return { ...collection, listing: 'partial', problems: [...collection.problems, problem] };
  }
  if (collection.listing !== 'absent' || isMounted(host)) return collection;
  const problem = { code: 'sysfs-unusable', message: `${host.sys.root} is missing, empty or cannot be listed` };
  return { ...collection, listing: 'partial', problems: [...collection.problems, problem] };
}

/**
 * Whether the machine may have devices of a family, as far as that shows without its probe. Without descriptors or without sysfs nothing
 * shows, and the probe tells that.
 */
export function isPresent({ isPresent: shows }: Pick<DeviceFamily, 'isPresent'>, host: Host): boolean {
  const shortages = shortagesOf(host);
  return shows === undefined || shows(host) || shortagesOf(host) !== shortages || !isMounted(host);
}

const shortagesOf = ({ sys, proc, dev }: Host): number => sys.shortages + proc.shortages + dev.shortages;

/** Whether there is a sysfs to look at. Each kernel has these directories, whatever its hardware. */
const isMounted = ({ sys }: Host): boolean => sys.list('class').length > 0 || sys.list('bus').length > 0;
