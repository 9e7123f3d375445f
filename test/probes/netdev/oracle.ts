import { basename, dirname, join } from 'node:path';
import { family } from '../../../src/probes/netdev/index.ts';
import type { Blinding, Fault, OracleFamily } from '../../oracle/family.ts';
import type { Overlay } from '../../oracle/overlaid-tree.ts';
import { hardwareOf } from '../../support/hardware.ts';

const CARDS = 2;
const { files, links, options = {} } = hardwareOf(family, { netdev: CARDS }, 30_000);

const cards = Array.from({ length: CARDS }, (_, card) => `0040:${(0x10 + card).toString(16)}:00`);
const PHYSICAL = cards.map((card) => `${card}.0`);
/** A card whose files hang. After a restart the agent knows that the card hung, and not that its functions depend on it. */
const HANGING = PHYSICAL[1] as string;
/** A function of a kernel driver, and one of user space, of the other card. */
const VIRTUAL = [`${cards[0]}.1`, `${cards[0]}.4`];
const DEVICES = [...PHYSICAL, ...VIRTUAL];

const parentOf = (device: string): string => device.replace(/\d$/, '0');
const childrenOf = (device: string): readonly string[] => VIRTUAL.filter((other) => parentOf(other) === device);
const inside =
  (end: string) =>
  (device: string): string =>
    Object.keys(files).find((path) => path.includes(`/${parentOf(device)}/`) && path.endsWith(end)) ?? end;
const CARRIER = inside('/carrier');
const ADDRESS = (card: string): string => join(dirname(CARRIER(card)), 'address');
/** Counts of the root port, and the permanent address that identifies a card. */
const added = (card: string): readonly [string, string][] => [
  [ROOT_PORT(card), '0\n'],
  [join(dirname(CARRIER(card)), 'addr_assign_type'), '0\n'],
];
const interfaceOf = (card: string): string => basename(dirname(CARRIER(card)));
const FLAGS = inside('/flags');
const AER = inside('/aer_dev_fatal');
/** Fatal errors that the root port above a card received. */
const ROOT_PORT = (device: string): string => join(dirname(dirname(AER(device))), 'aer_rootport_total_err_fatal');
const LOSSES = inside('/carrier_down_count');
const COUNTERS = (device: string): string => {
  const number = Number(device.at(-1)) - 1;
  return inside(`/sriov/${number}/stats/rx_bytes`)(device);
};

const onAll = (condition: string) => (device: string) => childrenOf(device).map((child) => ({ device: child, condition }));

/** A fatal error has no end, because the counters of the kernel only grow. */
const fatalError = (card: string, name: string, file: (device: string) => string, text: string): Fault => ({
  name,
  condition: 'AerFatal',
  devices: [card],
  recovery: 'never',
  isFromPast: true,
  paceMs: 30_000,
  shadows: onAll('AerFatal')(card),
  shownBy: (device) => [file(device)],
  begin: (tree, device, layer) => tree.put(layer, file(device), text),
});

/** A fault of a port of a card: it also shows on the virtual functions. One fault for each card, because the shadows depend on it. */
const portFaults: readonly Fault[] = PHYSICAL.flatMap((card): Fault[] => [
  {
    name: `port of ${card} without a link`,
    condition: 'PortDown',
    devices: [card],
    group: 'link',
    isFromPast: true,
    shadows: onAll('PortDown')(card),
    shownBy: (device) => [CARRIER(device), FLAGS(device)],
    begin: (tree, device, layer) => tree.put(layer, CARRIER(device), '0\n'),
    end: (tree, _device, layer) => tree.take(layer),
  },
  fatalError(card, `fatal PCIe error of ${card}`, AER, 'DLP 1\nTOTAL_ERR_FATAL 1\n'),
  fatalError(card, `fatal PCIe error of ${card} that only the root port counts`, ROOT_PORT, '1\n'),
]);

const everything = (device: string): readonly string[] => [CARRIER, FLAGS, AER, ROOT_PORT, LOSSES].map((path) => path(device));
const ofCard = (device: string): readonly string[] => [parentOf(device), ...childrenOf(parentOf(device))];

/** Replaces one file of a port. It concerns the virtual functions of the port, too. */
function portFile(name: string, path: (device: string) => string, overlay: Overlay): readonly Blinding[] {
  return PHYSICAL.map((card) => ({
    name: `${name} of ${card}`,
    scope: 'family',
    concerns: ofCard(card),
    leaves: 'read',
    hides: (device) => (ofCard(card).includes(device) ? [path(card)] : []),
    covers: () => ({ [path(card)]: overlay }),
  }));
}

const text = (content: string): Overlay => ({ kind: 'text', text: content });

const blindings: readonly Blinding[] = [
  ...portFile('the carrier is absent', CARRIER, { kind: 'absent' }),
  ...portFile('the carrier is garbage', CARRIER, text('2\n')),
  ...portFile('the carrier is empty', CARRIER, text('')),
  ...portFile('the carrier is a directory', CARRIER, { kind: 'directory' }),
  ...portFile('the losses are garbage', LOSSES, text('-1\n')),
  {
    name: 'sysfs is not mounted',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: () => ({ sys: { kind: 'directory' } }),
  },
  {
    name: 'the list of functions is a file',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: () => ({ 'sys/bus/pci/devices': text('') }),
  },
  {
    name: 'a file of a card hangs',
    scope: 'family',
    concerns: [HANGING],
    leaves: 'unread',
    hangs: true,
    hides: (device) => (device === HANGING ? everything(device) : []),
    covers: () => ({ [CARRIER(HANGING)]: { kind: 'hang' } }),
  },
];

export const oracle: OracleFamily = {
  family,
  options,
  machine: () => ({ files: { ...files, ...Object.fromEntries(PHYSICAL.flatMap(added)) }, links }),
  devices: DEVICES.map((id) => ({ id, deviceId: id })),
  faults: portFaults,
  blindings,
  kernelNames: {
    first: Object.fromEntries(PHYSICAL.map((card) => [card, interfaceOf(card)])),
    fresh: (count) => `eth${count}`,
    entries: (card, name) => ({ [dirname(CARRIER(card))]: name, [`sys/class/net/${interfaceOf(card)}`]: name }),
  },
  replacements: PHYSICAL.map((card) => ({
    devices: ofCard(card),
    directory: dirname(AER(card)),
    begin: (tree, count) => tree.write(ADDRESS(card), () => `02:00:00:00:01:${count.toString(16).padStart(2, '0')}\n`),
  })),
  counter: {
    metric: 'device_received_bytes_total',
    scale: 1,
    devices: VIRTUAL,
    path: COUNTERS,
    move: (tree, device, by) => tree.write(COUNTERS(device), (content) => `${BigInt(content.trim()) + BigInt(by)}\n`),
  },
};
