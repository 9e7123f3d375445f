import type { Blinding, Fault, OracleFamily } from '../../oracle/family.ts';
import type { Overlay } from '../../oracle/overlaid-tree.ts';
import { ACME, acmeFiles, declaredFamily } from './support.ts';

const family = await declaredFamily(ACME);
const machine = acmeFiles(2);
const DEVICES = ['X1A0', 'X1A1'];

const card = (device: string): string => `sys/devices/virtual/acme/acme${DEVICES.indexOf(device)}`;
const state = (device: string): string => `${card(device)}/state`;
const memory = (device: string): string => `${card(device)}/ecc_uncorrected`;
const heat = (device: string): string => `${card(device)}/hwmon/hwmon${DEVICES.indexOf(device)}/temp1_input`;
const jobs = (device: string): string => `${card(device)}/queue0/jobs`;
const everything = (device: string): readonly string[] => [state(device), memory(device), heat(device)];

function inFile(name: string, condition: string, path: (device: string) => string, text: string, more: Partial<Fault> = {}): Fault {
  return {
    name,
    condition,
    shownBy: (device) => [path(device)],
    begin: (tree, device, layer) => tree.put(layer, path(device), `${text}\n`),
    end: (tree, _device, layer) => tree.take(layer),
    ...more,
  };
}

const faults: readonly Fault[] = [
  inFile('the firmware stopped', 'CardFailed', state, 'halted'),
  inFile('memory error', 'MemoryErrors', memory, '3', { recovery: 'never', isFromPast: true }),
  inFile('too hot', 'Overheated', heat, '99500'),
];

const text = (content: string): Overlay => ({ kind: 'text', text: content });

/** One file of one card is another one. */
function oneFile(name: string, path: (device: string) => string, overlay: Overlay): Blinding {
  return {
    name: `${name} ${path('X1A0').split('/').at(-1)}`,
    scope: 'device',
    leaves: 'read',
    hides: (device) => [path(device)],
    covers: (_tree, device) => ({ [path(device)]: overlay }),
  };
}

const blindings: readonly Blinding[] = [
  ...[state, memory, heat].flatMap((path) => [
    oneFile('absent:', path, { kind: 'absent' }),
    oneFile('garbage:', path, text('zz\n')),
    oneFile('empty:', path, text('')),
    oneFile('directory:', path, { kind: 'directory' }),
  ]),
  {
    name: 'the state hangs',
    scope: 'device',
    leaves: 'unread',
    hangs: true,
    hides: everything,
    covers: (_tree, device) => ({ [state(device)]: { kind: 'hang' } }),
  },
  {
    name: 'the card is gone',
    scope: 'device',
    leaves: 'gone',
    hides: everything,
    covers: (_tree, device) => ({ [`sys/class/acme/acme${DEVICES.indexOf(device)}`]: { kind: 'absent' } }),
  },
  {
    name: 'there is no sysfs',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: () => ({ sys: { kind: 'absent' } }),
  },
  {
    name: 'the class is a file',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: () => ({ 'sys/class/acme': text('') }),
  },
];

export const oracle: OracleFamily = {
  family,
  options: {},
  machine: () => machine,
  devices: DEVICES.map((id) => ({ id, deviceId: id })),
  faults,
  blindings,
  // The serial number is the name.
  replacements: DEVICES.map((device) => ({
    devices: [device],
    directory: card(device),
    begin: (tree, count) => tree.write(`${card(device)}/serial`, () => `X1B${count}\n`),
    names: (count) => ({ [device]: `X1B${count}` }),
  })),
  counter: {
    metric: 'device_acme_jobs_total',
    scale: 1,
    devices: DEVICES,
    path: jobs,
    move(tree, device, by) {
      const path = jobs(device);
      tree.write(path, (before) => `${Number(before) + by}\n`);
    },
  },
};
