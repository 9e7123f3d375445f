import { basename } from 'node:path';
import type { Tree } from '../../../host/fs/tree.ts';
import { isPciAddress, normalizePciAddress } from '../../../host/pci/pci.ts';
import { isSuspended } from '../../../host/pci/pcie.ts';
import type { Problem, ProblemSpec } from '../../../model/collection.ts';
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

export const CLASS = 'class/drm';

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

/** Order of nodes: `card2` comes before `card10`. */
export const byNodeNumber = (a: string, b: string): number => nodeNumber(a) - nodeNumber(b) || (a < b ? -1 : 1);
export const nodeNumber = (node: string): number => Number(/\d+$/.exec(node)?.[0] ?? 0);

/** What a node below `/dev/dri` belongs to. `parent`: a device that is no PCI function. */
export type NodeOwner = CopiedCard | { readonly parent: string } | { readonly problem: Problem };

/** Finds the owner of a node by the link of the class; undefined for another driver. It opens a file only in a tree without links. */
export function ownerOfNode(sys: Tree, node: string, isDriver: (name: string) => boolean): NodeOwner | undefined {
  const link = sys.link(`${CLASS}/${node}`);
  if (link === undefined) return node.startsWith('card') ? copiedCard(sys, `${CLASS}/${node}`, isDriver) : undefined;
  const address = link.split('/').at(-3) ?? '';
  if (!isPciAddress(address)) return { parent: address };
  const directory = `bus/pci/devices/${address}`;
  const driver = basename(sys.link(`${directory}/driver`) ?? '');
  return isDriver(driver) ? { address, directory, driver } : undefined;
}

/** The card sleeps. The read does not wake it. */
export const isCardAsleep = (sys: Tree, directory: string): boolean => isSuspended(sys.reread(`${directory}/power/runtime_status`).text);

export const cardHangs = ({ address, directory }: Pick<CopiedCard, 'address' | 'directory'>): Problem => ({
  code: 'card-hangs',
  message: `an earlier read of /sys/${directory} still hangs`,
  device: address,
});

/** Vendor and device (`0x1002`) in `uevent`, for trees without the files of the PCI core. */
export function idsInUevent(sys: Tree, directory: string): { readonly vendor?: string; readonly device?: string } {
  const text = plainText(sys.read(`${directory}/uevent`).text ?? '');
  const [, vendor, device] = /^PCI_ID=([0-9A-F]{4}):([0-9A-F]{4})$/m.exec(text) ?? [];
  return vendor === undefined || device === undefined ? {} : { vendor: `0x${vendor.toLowerCase()}`, device: `0x${device.toLowerCase()}` };
}

/** Problems of a family of graphics cards. `drivers`: what to search for in the kernel log. `hidden`: what is unknown without the processes. */
export const cardProblems = (drivers: string, hidden: string) =>
  [
    {
      code: 'address-unknown',
      meaning: 'The PCI address of a card cannot be read, so the card has no stable name.',
      remedy: 'Check that the agent sees the complete /sys of the host.',
    },
    {
      code: 'card-hangs',
      meaning: 'A read of a file of the card does not return, so the card is not read.',
      remedy: `Search the kernel log for ${drivers}. The node usually needs a reboot.`,
    },
    {
      code: 'processes-hidden',
      meaning: hidden,
      remedy:
        'A process with very many open files needs several searches; wait for them. Otherwise let the agent see the /proc of the host, and give it the capabilities SYS_PTRACE and DAC_READ_SEARCH (processes.enabled in the values of the chart). Under AppArmor it can also need the profile Unconfined.',
    },
  ] as const satisfies readonly ProblemSpec[];
