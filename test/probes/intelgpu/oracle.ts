import { family } from '../../../src/probes/intelgpu/index.ts';
import type { Blinding, Fault, OracleFamily } from '../../oracle/family.ts';
import { INTERVAL_MS } from '../../oracle/node.ts';
import type { OverlaidTree, Overlay } from '../../oracle/overlaid-tree.ts';
import { hardwareOf } from '../../support/hardware.ts';

const hardware = hardwareOf(family, { intelgpu: 2 });
const { files: simulated, links } = hardware ?? { files: {}, links: {} };
/** Each fact is in one file, so that hiding the file hides the fact. A kernel tells the reasons of throttling twice. */
const files = Object.fromEntries(Object.entries(simulated).filter(([path]) => !path.includes('/throttle/reason_')));
const DEVICES = ['0030:10:00.0', '0030:11:00.0'];

const inside =
  (end: string) =>
  (device: string): string =>
    Object.keys(files).find((path) => path.includes(`/${device}/`) && path.endsWith(end)) ?? end;
const PACKAGE = inside('/temp2_input');
const MEMORY = inside('/temp3_input');
const REASONS = inside('/throttle/reasons');
const directoryOf = (device: string): string => PACKAGE(device).slice(0, PACKAGE(device).indexOf(device) + device.length);
const AER = inside('/aer_dev_fatal');
const STATUS = inside('/power/runtime_status');

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

const LOG = 'dev/kmsg';

/** Adds a record with the next sequence number to the kernel log, and the properties of its device. */
function log(tree: OverlaidTree, text: string, properties = ''): void {
  tree.write(LOG, (before) => {
    const last = Number(/(\d+),\d+,-;[^\n]*\n(?: [^\n]*\n)*$/.exec(before)?.[1] ?? 0);
    return `${before}3,${last + 1},${1_000_000 + last},-;${text}\n${properties}`;
  });
}

/** A fault that the driver logs, and that ends when the driver starts again. */
function inLog(name: string, condition: string, line: (device: string) => string): Fault {
  return {
    name,
    condition,
    // The start of the driver ends all of them.
    group: 'log',
    shownBy: () => [LOG],
    begin: (tree, device) => log(tree, line(device), ` SUBSYSTEM=pci\n DEVICE=+pci:${device}\n`),
    end: (tree, device) => log(tree, `[drm] Initialized xe 1.1.0 for ${device} on minor 200`),
  };
}

const faults: readonly Fault[] = [
  inLog('wedged', 'Wedged', (device) => `xe ${device}: [drm] *ERROR* CRITICAL: Xe has declared device ${device} as wedged.`),
  inLog(
    'fatal hardware error',
    'HardwareFatal',
    (device) => `xe ${device}: [drm] *ERROR* [Hardware Error]: Tile0 reported FATAL error 0x1`,
  ),
  inFile('package too hot', 'OverTemperature', PACKAGE, '101000', { group: 'package' }),
  inFile('package at its emergency', 'OverTemperature', PACKAGE, '106000', { group: 'package' }),
  inFile('memory too hot', 'OverTemperature', MEMORY, '106000'),
  inFile('throttled by heat', 'Throttled', REASONS, 'thermal'),
  inFile('fatal PCIe error', 'AerFatal', AER, 'DLP 1\nTOTAL_ERR_FATAL 1', { recovery: 'never', isFromPast: true, paceMs: 30_000 }),
];

const everything = (device: string): readonly string[] => [PACKAGE, MEMORY, REASONS, AER].map((path) => path(device));

/** Default interval of the reads of what rarely changes, such as the names of the sensors. */
const FACTS_MS = 60_000;

/** Replaces one file of a device. */
function oneFile(name: string, path: (device: string) => string, overlay: Overlay): Blinding {
  return {
    name: `${name} ${path(DEVICES[0] as string)
      .split('/')
      .at(-1)}`,
    scope: 'device',
    leaves: 'read',
    hides: (device) => [path(device)],
    covers: (_tree, device) => ({ [path(device)]: overlay }),
    ...(overlay.kind === 'absent' && { returnsMs: FACTS_MS + INTERVAL_MS }),
  };
}

const text = (content: string): Overlay => ({ kind: 'text', text: content });

const blindings: readonly Blinding[] = [
  ...[PACKAGE, MEMORY, REASONS].flatMap((path) => [
    oneFile('absent:', path, { kind: 'absent' }),
    oneFile('garbage:', path, text('0x zz!\n')),
    oneFile('empty:', path, text('')),
    oneFile('directory:', path, { kind: 'directory' }),
  ]),
  {
    name: 'the card sleeps',
    scope: 'device',
    leaves: 'read',
    hides: everything,
    covers: (_tree, device) => ({ [STATUS(device)]: text('suspended\n') }),
  },
  {
    name: 'a file of the card hangs',
    scope: 'device',
    leaves: 'unread',
    hangs: true,
    hides: everything,
    // A sleeping card is not read, so its files cannot hang: the two blindings do not meet.
    covers: (_tree, device) => ({ [STATUS(device)]: { kind: 'hang' }, [PACKAGE(device)]: { kind: 'hang' } }),
  },
  {
    name: 'the kernel log is a directory',
    scope: 'family',
    leaves: 'read',
    hides: () => [LOG],
    covers: () => ({ [LOG]: { kind: 'directory' } }),
  },
  {
    name: 'the kernel log is gone',
    scope: 'family',
    leaves: 'read',
    hides: () => [LOG],
    covers: () => ({ [LOG]: { kind: 'absent' } }),
  },
  { name: 'sysfs is not mounted', scope: 'family', leaves: 'unread', hides: everything, covers: () => ({ sys: { kind: 'directory' } }) },
  {
    name: 'the class directory is a file',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: () => ({ 'sys/class/drm': text('') }),
  },
];

export const oracle: OracleFamily = {
  family,
  options: hardware?.options ?? {},
  machine: () => ({ files, links }),
  devices: DEVICES.map((id, index) => ({ id, deviceId: `card${200 + index}-0` })),
  faults,
  blindings,
  kernelNames: {
    first: Object.fromEntries(DEVICES.map((id, at) => [id, String(200 + at)])),
    fresh: (count) => String(210 + count),
    entries(device, name) {
      const built = 200 + DEVICES.indexOf(device);
      const names = { [`card${built}`]: `card${name}`, [`renderD${128 + built}`]: `renderD${128 + Number(name)}` };
      return Object.fromEntries(
        Object.entries(names).flatMap(([from, to]) => [
          [`${directoryOf(device)}/drm/${from}`, to],
          [`sys/class/drm/${from}`, to],
        ]),
      );
    },
  },
  // No file of a card tells which one it is.
  replacements: DEVICES.map((device) => ({ devices: [device], directory: directoryOf(device), isUnidentified: true, begin() {} })),
};
