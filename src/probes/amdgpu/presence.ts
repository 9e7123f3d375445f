import { basename } from 'node:path';
import type { Host } from '../../host/host.ts';
import { CLASS } from './discover.ts';

/** Returns true when a graphics device belongs to a driver of AMD, when its driver is unknown, or when the class cannot be listed. */
export function isPresent({ sys }: Host): boolean {
  const { names, error } = sys.listing(CLASS);
  if (names === undefined) return error !== 'ENOENT';
  return names
    .filter((name) => /^card\d+$/.test(name))
    .some((name) => {
      const driver = sys.link(`${CLASS}/${name}/device/driver`);
      // A tree without links may have a card of this family.
      if (driver === undefined) return sys.link(`${CLASS}/${name}`) === undefined;
      return ['amdgpu', 'radeon'].includes(basename(driver));
    });
}
