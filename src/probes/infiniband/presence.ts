import type { Host } from '../../host/host.ts';
import { CLASS } from './discover.ts';

/** Whether there is a class directory with a name in it, or one that cannot be listed. */
export function isPresent({ sys }: Host): boolean {
  const { names, error } = sys.listing(CLASS);
  return names === undefined ? error !== 'ENOENT' : names.length > 0;
}
