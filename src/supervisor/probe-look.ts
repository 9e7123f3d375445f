import type { Host } from '../host/host.ts';
import type { Collection } from '../model/collection.ts';
import type { DeviceFamily, Probe } from '../probes/family.ts';
import { withSharedIdentities } from './shared-identity.ts';

/** Collects once and corrects what the probe cannot know: without descriptors or without sysfs no collection is complete. */
export async function collectChecked(probe: Probe, host: Host): Promise<Collection> {
  const shortages = shortagesOf(host);
  const collection = withSharedIdentities(await probe.collect());
  if (shortagesOf(host) !== shortages) {
    const problem = { code: 'descriptors-exhausted', message: 'files cannot be opened: no descriptors are left' };
    // It is unknown which values are missing, and what the facts lack that the probe keeps.
    probe.forget?.();
    const reports = collection.reports.map(({ read: _, ...report }) => report);
    return { ...collection, reports, listing: 'partial', problems: [...collection.problems, problem] };
  }
  if (collection.listing !== 'absent' || isMounted(host)) return collection;
  const problem = { code: 'sysfs-unusable', message: `${host.sys.root} is missing, empty or cannot be listed` };
  return { ...collection, listing: 'partial', problems: [...collection.problems, problem] };
}

/**
 * Whether the machine may have devices of a family, checked without its probe. True when descriptors or sysfs are missing, so that the
 * probe runs and reports that problem.
 */
export function isPresent(
  { isPresent: check }: Pick<DeviceFamily, 'isPresent'>,
  host: Host,
  options: Readonly<Record<string, unknown>> = {},
): boolean {
  const shortages = shortagesOf(host);
  return check === undefined || check(host, options as never) || shortagesOf(host) !== shortages || !isMounted(host);
}

const shortagesOf = ({ sys, proc, dev }: Host): number => sys.shortages + proc.shortages + dev.shortages;

/** Whether sysfs is mounted. Every kernel has these directories, on any hardware. */
const isMounted = ({ sys }: Host): boolean => sys.list('class').length > 0 || sys.list('bus').length > 0;
