import type { Host } from '../../host/host.ts';
import { CLASS } from './layout.ts';
import { passedThrough } from './passed-through.ts';

/** Returns true when the kernel has a controller, or cannot list its controllers, or when a virtual machine has one. */
export function isPresent({ sys }: Host): boolean {
  const { names, error } = sys.listing(CLASS);
  if (names === undefined ? error !== 'ENOENT' : names.length > 0) return true;
  return passedThrough(sys).length > 0;
}
