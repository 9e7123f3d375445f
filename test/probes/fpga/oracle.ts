import { dirname } from 'node:path';
import { family } from '../../../src/probes/fpga/index.ts';
import type { Blinding, Fault, OracleFamily } from '../../oracle/family.ts';
import type { Overlay } from '../../oracle/overlaid-tree.ts';
import { hardwareOf } from '../../support/hardware.ts';

/** A DFL board with its port, and an Alveo board. */
const { files, links } = hardwareOf(family, { fpga: 2 });
const [DFL, PORT, ALVEO] = ['0010:21:00.0', '0010:21:00.0-port0', '0010:22:00.1'];
const MANAGEMENT = '0010:22:00.0';

const ending = (end: string): string => Object.keys(files).find((path) => path.endsWith(end)) ?? end;
const CATASTROPHIC = ending('/errors/catfatal_errors');
const NONFATAL = ending('/errors/nonfatal_errors');
const BITSTREAM = ending('/bitstream_id');
const PORT_ERRORS = ending('/dfl-port.0/errors/errors');
const POWER = ending('/dfl-port.0/power_state');
const FIREWALL = ending('/firewall.m.4194304/status');
const BAD_STATE = ending('/device_bad_state');
const HEARTBEAT = ending('/xmc_heartbeat_stall');
const ECC = ending('/ecc_status');
const REGION = dirname(dirname(ending('/dfl-port.0/id')));
const SERIAL = ending('/serial_num');
const aerOf = (address: string): string => ending(`/${address}/aer_dev_fatal`);

const directoryOf = (address: string): string => dirname(aerOf(address));

function inFile(name: string, condition: string, device: string, path: string, text: string, more: Partial<Fault> = {}): Fault {
  return {
    name,
    condition,
    devices: [device],
    shownBy: () => [path],
    begin: (tree, _device, layer) => tree.put(layer, path, `${text}\n`),
    end: (tree, _device, layer) => tree.take(layer),
    ...more,
  };
}

const faults: readonly Fault[] = [
  inFile('catastrophic error', 'FatalError', DFL, CATASTROPHIC, '0x400', { shadows: [{ device: PORT, condition: 'CardFault' }] }),
  inFile('nonfatal error', 'NonfatalError', DFL, NONFATAL, '0x4'),
  inFile('error of the port', 'PortError', PORT, PORT_ERRORS, '0x1'),
  inFile('emergency shutdown', 'PowerDown', PORT, POWER, '0x6'),
  inFile('firewall tripped', 'FirewallTripped', ALVEO, FIREWALL, '1'),
  inFile('the scheduler gave up', 'BadState', ALVEO, BAD_STATE, '1'),
  inFile('the controller stalls', 'BmcStalled', ALVEO, HEARTBEAT, '1'),
  inFile('uncorrectable memory error', 'EccUncorrectable', ALVEO, ECC, '0x1'),
  ...[DFL, ALVEO].map((device) =>
    inFile(`fatal PCIe error of ${device}`, 'AerFatal', device, aerOf(device), 'DLP 1\nTOTAL_ERR_FATAL 1', {
      recovery: 'never',
      isFromPast: true,
      paceMs: 40_000,
      shadows: device === DFL ? [{ device: PORT, condition: 'AerFatal' }] : [],
    }),
  ),
];

/** All files that faults change, keyed by device. Those of a DFL board include its port. */
const FILES: Readonly<Record<string, readonly string[]>> = {
  [DFL]: [CATASTROPHIC, NONFATAL, BITSTREAM, aerOf(DFL)],
  [PORT]: [CATASTROPHIC, PORT_ERRORS, POWER, aerOf(DFL)],
  [ALVEO]: [FIREWALL, BAD_STATE, HEARTBEAT, ECC, aerOf(ALVEO)],
};
const everything = (device: string): readonly string[] => FILES[device] ?? [];

/** Replaces one file of any device. */
function oneFile(name: string, path: string, overlay: Overlay): Blinding {
  return {
    name: `${name} ${path.split('/').slice(-2).join('/')}`,
    scope: 'family',
    leaves: 'read',
    hides: (device) => (everything(device).includes(path) ? [path] : []),
    covers: () => ({ [path]: overlay }),
  };
}

const text = (content: string): Overlay => ({ kind: 'text', text: content });

const blindings: readonly Blinding[] = [
  ...[CATASTROPHIC, PORT_ERRORS, POWER, FIREWALL, BAD_STATE, HEARTBEAT, ECC].flatMap((path) => [
    oneFile('absent:', path, { kind: 'absent' }),
    oneFile('garbage:', path, text('0xzz\n')),
    oneFile('empty:', path, text('')),
    oneFile('directory:', path, { kind: 'directory' }),
  ]),
  oneFile('all ones:', CATASTROPHIC, text('0xffffffffffffffff\n')),
  ...(
    [
      [DFL, CATASTROPHIC],
      [PORT, PORT_ERRORS],
      [ALVEO, BAD_STATE],
    ] as const
  ).map(
    ([device, path]): Blinding => ({
      name: `a file of ${device} hangs`,
      scope: 'family',
      // A board and its port are one function on the bus, so a hanging read affects both.
      leaves: 'unread',
      concerns: device === ALVEO ? [ALVEO] : [DFL, PORT],
      hangs: true,
      hides: (other) => ((device === ALVEO) === (other === ALVEO) ? everything(other) : []),
      covers: () => ({ [path]: { kind: 'hang' } }),
    }),
  ),
  {
    name: 'there is no sysfs',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: () => ({ sys: { kind: 'absent' } }),
  },
  {
    name: 'sysfs is not mounted',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: () => ({ sys: { kind: 'directory' } }),
  },
  {
    name: 'the bus is a file',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: () => ({ 'sys/bus/pci/devices': text('') }),
  },
];

export const oracle: OracleFamily = {
  family,
  options: {},
  machine: () => ({ files: { ...files, [ending(`/${MANAGEMENT}/mgmt_pf`)]: '' }, links }),
  devices: [DFL, PORT, ALVEO].map((id) => ({ id, deviceId: id })),
  faults,
  blindings,
  kernelNames: {
    first: { [DFL]: '0' },
    fresh: (count) => String(count),
    entries: (_device, name) => ({
      [REGION]: `region${10 + Number(name)}`,
      'sys/class/fpga_region/region0': `region${10 + Number(name)}`,
      ...Object.fromEntries(
        ['dfl-fme', 'dfl-port'].flatMap((part) =>
          [REGION, 'sys/bus/platform/devices', 'dev'].map((folder) => [`${folder}/${part}.0`, `${part}.${name}`]),
        ),
      ),
    }),
  },
  replacements: [
    {
      devices: [ALVEO],
      directory: directoryOf(ALVEO),
      begin: (tree, count) => tree.write(SERIAL, () => `21320733W${count}\n`),
    },
    // The driver of the other board tells no number.
    { devices: [DFL, PORT], directory: directoryOf(DFL), isUnidentified: true, begin() {} },
  ],
};
