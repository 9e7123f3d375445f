import type { Host } from '../../host/host.ts';
import { CLASS } from './discover.ts';

/** Returns true when the class directory has an entry, or exists but cannot be listed. */
export function isPresent({ sys }: Host): boolean {
  const { names, error } = sys.listing(CLASS);
  return names === undefined ? error !== 'ENOENT' : names.length > 0;
}
