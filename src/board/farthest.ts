import type { ContainerLocality } from '../model/container-locality.ts';
import { farthestPairs } from '../model/locality.ts';

/** For each device, the farthest device that a container holds with it: `SYS to eth0`. `nameOf` names a device by its key. */
export function farthestTexts(
  localities: readonly Pick<ContainerLocality, 'pairs'>[],
  nameOf: (key: string) => string,
): ReadonlyMap<string, string> {
  const farthest = farthestPairs(localities.flatMap(({ pairs }) => pairs));
  return new Map([...farthest].map(([key, { from, to, path = 'unknown' }]) => [key, `${path} to ${nameOf(key === from ? to : from)}`]));
}
