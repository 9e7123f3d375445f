import { basename } from 'node:path';
import type { Tree } from '../../../host/fs/tree.ts';
import { normalizePciAddress } from '../../../host/pci/pci.ts';
import type { Problem } from '../../../model/collection.ts';
import { noValueOf } from '../device-files.ts';
import { plainText } from '../text.ts';

/** PCI function of a card, as its file `uevent` names it. */
interface CopiedCard {
  readonly address: string;
  readonly driver: string;
  /** Directory of the function below the card. */
  readonly directory: string;
}

/**
 * Finds the PCI function of a card in a tree that lost its links, as a copy does. `card`: path of the card below `/sys`. Undefined when
 * there is no such file, or when another driver has the card.
 */
export function copiedCard(
  sys: Tree,
  card: string,
  isDriver: (name: string) => boolean,
): CopiedCard | { readonly problem: Problem } | undefined {
  const directory = `${card}/device`;
  const { text, error } = sys.read(`${directory}/uevent`);
  if (text === undefined) {
    if (noValueOf(error) === 'absent') return undefined;
    return { problem: { code: 'address-unknown', message: `/sys/${directory}/uevent: ${error}` } };
  }
  const values = new Map(
    plainText(text)
      .split('\n')
      .map((line) => line.split('=', 2) as [string, string]),
  );
  const driver = values.get('DRIVER') ?? '';
  if (!isDriver(driver)) return undefined;
  const address = normalizePciAddress(values.get('PCI_SLOT_NAME') ?? '');
  if (address === undefined) return { problem: { code: 'address-unknown', message: `/sys/${directory}/uevent names no PCI function` } };
  return { address, driver, directory };
}

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
