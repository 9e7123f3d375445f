import { family } from '../../../src/probes/infiniband/index.ts';
import type { Blinding, Fault, OracleFamily } from '../../oracle/family.ts';
import type { Overlay } from '../../oracle/overlaid-tree.ts';
import { hardwareOf } from '../../support/hardware.ts';

const HCAS = 3;
const { files, links } = hardwareOf(family, { infiniband: HCAS }, 30_000);

const CLASS = 'sys/class/infiniband';
const names = Array.from({ length: HCAS }, (_, index) => `mlx5_${index}`);
const [FIRST, , COPY] = names as [string, string, string];
const addresses = new Map(
  names.map((name) => [name, Object.keys(files).flatMap((path) => path.match(`([^/]+)/infiniband/${name}/fw_ver$`)?.[1] ?? [])[0] ?? '']),
);

/** Returns the real path of a device's file: its entry in the class directory is a link. */
const realPaths = new Map(Object.keys(files).map((path) => [path.replace(/^.*\/infiniband\//, ''), path]));
const pciPaths = new Map(Object.keys(files).map((path) => [path.split('/').slice(-2).join('/'), path]));
const pathOf = (device: string, file: string): string => realPaths.get(`${device}/${file}`) ?? '';
const directoryOf = (device: string): string => pathOf(device, 'fw_ver').slice(0, -'/fw_ver'.length);
const pciPathOf = (device: string, file: string): string => pciPaths.get(`${addresses.get(device)}/${file}`) ?? '';

const STATE = 'ports/1/state';
const PHYSICAL = 'ports/1/phys_state';
const RATE = 'ports/1/rate';
const RECEIVED = 'ports/1/counters/port_rcv_data';

const line = (content: string): string => `${content}\n`;
const text = (content: string) => ({ kind: 'text', text: line(content) }) as const;

const faultsAt = (paceMs: number): readonly Fault[] => [
  {
    name: 'port down',
    paceMs,
    condition: 'PortDown',
    group: 'state',
    isFromPast: true,
    shownBy: (device) => [pathOf(device, STATE)],
    begin(tree, device, layer) {
      tree.put(layer, pathOf(device, STATE), line('1: DOWN'));
      tree.put(layer, pathOf(device, PHYSICAL), line('2: Polling'));
      tree.put(layer, pathOf(device, RATE), line('10 Gb/sec (4X SDR)'));
    },
    end: (tree, _device, layer) => tree.take(layer),
  },
  {
    name: 'port waits for a subnet manager',
    paceMs,
    condition: 'PortInitializing',
    group: 'state',
    shownBy: (device) => [pathOf(device, STATE)],
    begin: (tree, device, layer) => tree.put(layer, pathOf(device, STATE), line('2: INIT')),
    end: (tree, _device, layer) => tree.take(layer),
  },
  {
    name: 'fatal PCIe error',
    condition: 'AerFatal',
    recovery: 'never',
    isFromPast: true,
    paceMs: 40_000,
    shownBy: (device) => [pciPathOf(device, 'aer_dev_fatal')],
    begin: (tree, device, layer) => tree.put(layer, pciPathOf(device, 'aer_dev_fatal'), line('DLP 1\nTLP 0\nTOTAL_ERR_FATAL 1')),
  },
  {
    name: 'integrity errors',
    paceMs,
    condition: 'LocalLinkIntegrity',
    recovery: 'never',
    isFromPast: true,
    shownBy: (device) => [pathOf(device, 'ports/1/counters/local_link_integrity_errors')],
    begin: (tree, device, layer) => tree.put(layer, pathOf(device, 'ports/1/counters/local_link_integrity_errors'), line('7')),
  },
];

const all = (device: string): readonly string[] => [STATE, PHYSICAL, RATE, RECEIVED].map((file) => pathOf(device, file));
const everything = (device: string): readonly string[] => [
  ...all(device),
  pathOf(device, 'ports/1/counters/local_link_integrity_errors'),
  pciPathOf(device, 'aer_dev_fatal'),
];

function hanging(name: string, path: (device: string) => string, paceMs: number): Blinding {
  return {
    name,
    paceMs,
    scope: 'device',
    leaves: 'unread',
    hangs: true,
    hides: everything,
    covers: (_tree, device) => ({ [path(device)]: { kind: 'hang' } }),
  };
}

/** The state of the only port cannot be read, so the device counts as unreachable. */
function stateless(name: string, overlay: Overlay, paceMs: number): Blinding {
  return {
    name,
    paceMs,
    scope: 'device',
    leaves: 'read',
    unknownAfterMs: 60_000 + paceMs,
    hides: (device) => [pathOf(device, STATE)],
    covers: (_tree, device) => ({ [pathOf(device, STATE)]: overlay }),
  };
}

const blindingsAt = (paceMs: number): readonly Blinding[] => [
  hanging('a counter hangs', (device) => pathOf(device, RECEIVED), paceMs),
  hanging('the state hangs', (device) => pathOf(device, STATE), paceMs),
  stateless('the state is garbage', text('4: ACTIV\u0000'), paceMs),
  stateless('the state is cut off', { kind: 'text', text: '' }, paceMs),
  stateless('the state is absent', { kind: 'absent' }, paceMs),
  stateless('the state is a directory', { kind: 'directory' }, paceMs),
  {
    name: 'counters are garbage',
    paceMs,
    scope: 'device',
    leaves: 'read',
    hides: (device) => [RECEIVED, 'ports/1/counters/local_link_integrity_errors'].map((file) => pathOf(device, file)),
    covers: (_tree, device) => ({
      [pathOf(device, RECEIVED)]: text('many'),
      [pathOf(device, 'ports/1/counters/local_link_integrity_errors')]: text('many'),
    }),
  },
  {
    name: 'PCIe errors are absent',
    scope: 'device',
    leaves: 'read',
    hides: (device) => [pciPathOf(device, 'aer_dev_fatal')],
    covers: (_tree, device) => ({ [pciPathOf(device, 'aer_dev_fatal')]: { kind: 'absent' } }),
  },
  {
    name: 'the device is gone',
    scope: 'device',
    leaves: 'gone',
    hides: everything,
    covers: (_tree, device) => ({ [`${CLASS}/${device}`]: { kind: 'absent' } }),
  },
  {
    name: 'the class directory is gone',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: (_tree, _device) => ({ [CLASS]: { kind: 'absent' } }),
  },
  {
    name: 'the class directory is a file',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: (_tree, _device) => ({ [CLASS]: text('') }),
  },
  {
    name: 'sysfs is not mounted',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: (_tree, _device) => ({ sys: { kind: 'directory' } }),
  },
  {
    name: 'there is no sysfs',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: (_tree, _device) => ({ sys: { kind: 'absent' } }),
  },
];

/** State and counters are read at each refresh. */
const paceMs = 0;

export const oracle: OracleFamily = {
  family,
  options: {},
  machine: () => ({ files: { ...files, [pathOf(COPY, 'node_guid')]: files[pathOf(FIRST, 'node_guid')] as string }, links }),
  devices: names.map((id) => ({ id, deviceId: addresses.get(id) as string })),
  faults: faultsAt(paceMs),
  blindings: blindingsAt(paceMs),
  kernelNames: {
    areIds: true,
    first: Object.fromEntries(names.map((name) => [name, name])),
    fresh: (count) => `renamed_${count}`,
    entries: (device, name) => ({ [directoryOf(device)]: name, [`${CLASS}/${device}`]: name }),
  },
  replacements: names.slice(0, -1).map((device) => ({
    devices: [device],
    directory: directoryOf(device),
    begin: (tree, count) => tree.write(pathOf(device, 'node_guid'), () => line(`0000:0000:0000:${String(count).padStart(4, '0')}`)),
  })),
  // Adapters in other slots may have one GUID, and are told apart by their slots.
  duplicates: [
    {
      first: [FIRST],
      second: [COPY],
      isIdentity: false,
      leave: (tree, [device = ''], layer) => tree.remove(layer, `${CLASS}/${device}`),
    },
  ],
  counter: {
    metric: 'device_received_bytes_total',
    scale: 4,
    paceMs,
    devices: names,
    path: (device) => pathOf(device, RECEIVED),
    move(tree, device, by) {
      const path = pathOf(device, RECEIVED);
      tree.write(path, (text) => `${BigInt(text.trim()) + BigInt(by)}\n`);
    },
  },
};
