import type { Host } from '../../host/host.ts';
import { isNetworkFunction, userSpaceFunctions } from './discover.ts';
import type { NetdevOptions } from './options.ts';

/**
 * Returns true when SR-IOV is in use, when a program in user space has a network function, or when all functions are wanted. Every machine
 * has a network port, so a port alone is not enough. The check follows links, and reads the class of functions of user space only.
 */
export function isPresent({ sys }: Host, options?: Pick<NetdevOptions, 'all'>): boolean {
  if (options?.all === true) return true;
  const hasFunctions = sys.list('class/net').some((name) => sys.link(`class/net/${name}/device/virtfn0`) !== undefined);
  return hasFunctions || userSpaceFunctions(sys).some((address) => isNetworkFunction(sys, address));
}
