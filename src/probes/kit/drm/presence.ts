import { basename } from 'node:path';
import type { Tree } from '../../../host/fs/tree.ts';

const CLASS = 'class/drm';

/** Whether one of the drivers may have a card: it has one, the driver of a card is unknown, or the class cannot be listed. */
export function mayHaveCard(sys: Tree, drivers: readonly string[]): boolean {
  const { names, error } = sys.listing(CLASS);
  if (names === undefined) return error !== 'ENOENT';
  return names
    .filter((name) => /^card\d+$/.test(name))
    .some((name) => {
      const driver = sys.link(`${CLASS}/${name}/device/driver`);
      // A tree without links may have a card of these drivers.
      if (driver === undefined) return sys.link(`${CLASS}/${name}`) === undefined;
      return drivers.includes(basename(driver));
    });
}
