import type { ContainerLocality } from '../model/container-locality.ts';
import { isFarther } from '../model/locality.ts';

/** For each device, the farthest device that a container holds with it: `SYS to eth0`. `nameOf` names a device by its key. */
export function farthestTexts(
  localities: readonly Pick<ContainerLocality, 'pairs'>[],
  nameOf: (key: string) => string,
): ReadonlyMap<string, string> {
  const farthest = new Map<string, { readonly to: string; readonly path: string | undefined }>();
  for (const { from, to, path } of localities.flatMap(({ pairs }) => pairs)) {
    for (const [key, other] of [
      [from, to],
      [to, from],
    ] as const) {
      const known = farthest.get(key);
      if (known === undefined || isFarther(path, known.path)) farthest.set(key, { to: other, path });
    }
  }
  return new Map([...farthest].map(([key, { to, path }]) => [key, `${path ?? 'unknown'} to ${nameOf(to)}`]));
}
