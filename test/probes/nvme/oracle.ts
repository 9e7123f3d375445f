import { family } from '../../../src/probes/nvme/index.ts';
import type { Blinding, Duplicate, Fault, OracleFamily } from '../../oracle/family.ts';
import { INTERVAL_MS } from '../../oracle/node.ts';
import type { Overlay } from '../../oracle/overlaid-tree.ts';
import { hardwareOf } from '../../support/hardware.ts';

const hardware = hardwareOf(family, { nvme: 4 }, 30_000);
const files: Readonly<Record<string, string>> = hardware.files;
const links: Readonly<Record<string, string>> = hardware.links;

/** A drive: its controller, its namespace, and the directory of the controller. */
interface Drive {
  readonly index: number;
  readonly controller: string;
  readonly namespace: string;
  readonly directory: string;
  readonly function: string;
}

/** The third drive gives its namespace the id of that of the first one, and the fourth is a copy of the second one in all it tells. */
const drives: readonly Drive[] = [0, 1, 2, 3].map((index) => {
  const state = Object.keys(files).find((path) => path.endsWith(`/nvme${index}/state`)) as string;
  const directory = state.slice(0, -'/state'.length);
  const [controller = ''] = directory.split('/').slice(-3);
  return {
    index,
    controller,
    // The first of several namespaces with one id is called by it.
    namespace: index < 2 ? (files[`${directory}/nvme${index}n1/wwid`] as string).trim() : `${controller}-n1`,
    directory,
    function: directory.slice(0, directory.indexOf('/nvme/')),
  };
});
const IDS = drives.flatMap(({ controller, namespace }) => [controller, namespace]);

const driveOf = (device: string): Drive =>
  drives.find(({ controller, namespace }) => controller === device || namespace === device) as Drive;
const below = (device: string, end: RegExp): string => {
  const { function: root } = driveOf(device);
  return Object.keys(files).find((path) => path.startsWith(`${root}/`) && end.test(path)) as string;
};
const STATE = (device: string): string => below(device, /\/nvme\d+\/state$/);
const ALARM = (device: string): string => below(device, /\/temp1_alarm$/);
const AER = (device: string): string => below(device, /\/aer_dev_fatal$/);
const READ_ONLY = (device: string): string => below(device, /n1\/ro$/);
const COUNTS = (device: string): string => below(device, /n1\/stat$/);
const STATUS = (device: string): string => below(device, /\/power\/runtime_status$/);

const isController = (device: string): boolean => driveOf(device).controller === device;

function onDrive(
  { controller, namespace }: Drive,
  name: string,
  condition: string,
  path: string,
  text: string,
  more: Partial<Fault> = {},
): Fault {
  return {
    name: `${name} of ${controller}`,
    condition,
    devices: [controller],
    shadows: [{ device: namespace, condition }],
    shownBy: () => [path],
    begin: (tree, _device, layer) => tree.put(layer, path, `${text}\n`),
    end: (tree, _device, layer) => tree.take(layer),
    ...more,
  };
}

const [first, second, sameId, copy] = drives as [Drive, Drive, Drive, Drive];

const told = (to: Drive, from: Drive, names: readonly ((drive: Drive) => string)[]): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map((name) => [name(to), files[name(from)] as string]));
const WWID = ({ directory, index }: Drive): string => `${directory}/nvme${index}n1/wwid`;
const copies: Readonly<Record<string, string>> = {
  ...told(sameId, first, [WWID]),
  ...told(copy, second, [
    WWID,
    ...['serial', 'cntlid', 'model'].map(
      (file) =>
        ({ directory }: Drive) =>
          `${directory}/${file}`,
    ),
  ]),
};
const devicesOf = ({ controller, namespace }: Drive): readonly string[] => [controller, namespace];
const leave: Duplicate['leave'] = (tree, [controller = ''], layer) => {
  const { index } = driveOf(controller);
  const entries = [`class/nvme/nvme${index}`, `class/block/nvme${index}n1`, `bus/pci/devices/${controller}`];
  for (const entry of entries) tree.remove(layer, `sys/${entry}`);
};

/** A controller that is not live is asked for no temperature, so only the second drive, which is always live, can be hot. */
const faultsAt = (paceMs: number): readonly Fault[] => [
  onDrive(first, 'death', 'ControllerDead', STATE(first.controller), 'dead', { group: 'state' }),
  onDrive(first, 'long reset', 'ControllerNotLive', STATE(first.controller), 'resetting', { group: 'state' }),
  onDrive(second, 'heat', 'OverTemperature', ALARM(second.controller), '1', {
    shadows: [],
    paceMs,
    shownBy: () => [ALARM(second.controller), STATE(second.controller)],
  }),
  ...drives.flatMap((drive) => [
    onDrive(drive, 'fatal PCIe error', 'AerFatal', AER(drive.controller), 'DLP 1\nTOTAL_ERR_FATAL 1', {
      recovery: 'never',
      isFromPast: true,
      paceMs: 40_000,
    }),
    onDrive(drive, 'write protection', 'NamespaceReadOnly', READ_ONLY(drive.namespace), '1', { devices: [drive.namespace], shadows: [] }),
  ]),
];

const everything = (device: string): readonly string[] => [
  STATE(device),
  AER(device),
  ...(isController(device) ? [ALARM(device)] : [READ_ONLY(device), COUNTS(device)]),
];

const text = (content: string): Overlay => ({ kind: 'text', text: content });

/** Replaces one file of each drive. */
function oneFile(name: string, path: (device: string) => string, overlay: Overlay, more: Partial<Blinding> = {}): Blinding {
  return {
    name: `${name} ${path(IDS[0] as string)
      .split('/')
      .at(-1)}`,
    scope: 'family',
    leaves: 'read',
    hides: (device) => (everything(device).includes(path(device)) ? [path(device)] : []),
    covers: () => Object.fromEntries(drives.map(({ controller }) => [path(controller), overlay])),
    ...more,
  };
}

const WITHOUT_STATE = { hides: (device: string) => [STATE(device), ...(isController(device) ? [ALARM(device)] : [])] };

const blindingsAt = (paceMs: number): readonly Blinding[] => [
  ...(
    [
      [STATE, WITHOUT_STATE],
      [ALARM, { paceMs }],
      [READ_ONLY, {}],
      [COUNTS, {}],
    ] as const
  ).flatMap(([path, more]) => [
    oneFile('absent:', path, { kind: 'absent' }, more),
    oneFile('garbage:', path, text('0xzz\n'), more),
    oneFile('empty:', path, text(''), more),
    oneFile('directory:', path, { kind: 'directory' }, more),
  ]),
  oneFile('absent:', AER, { kind: 'absent' }),
  ...drives.map(
    (drive): Blinding => ({
      name: `${drive.controller} sleeps`,
      scope: 'family',
      leaves: 'read',
      hides: (device) => (driveOf(device) === drive ? [AER(device), ALARM(device)] : []),
      covers: () => ({ [STATUS(drive.controller)]: text('suspended\n') }),
    }),
  ),
  ...drives.map(
    (drive): Blinding => ({
      name: `the state of ${drive.controller} hangs`,
      scope: 'family',
      leaves: 'unread',
      concerns: [drive.controller, drive.namespace],
      hangs: true,
      hides: (device) => (driveOf(device) === drive ? everything(device) : []),
      covers: () => ({ [STATE(drive.controller)]: { kind: 'hang' } }),
    }),
  ),
  { name: 'there is no sysfs', scope: 'family', leaves: 'unread', hides: everything, covers: () => ({ sys: { kind: 'absent' } }) },
  { name: 'sysfs is not mounted', scope: 'family', leaves: 'unread', hides: everything, covers: () => ({ sys: { kind: 'directory' } }) },
  {
    name: 'the class directory is a file',
    scope: 'family',
    leaves: 'unread',
    hides: everything,
    covers: () => ({ 'sys/class/nvme': text('') }),
  },
];

/** Pace of the temperatures. They cannot be read at each refresh: an interval of 0 turns them off. */
const atPace = (atLeastMs: number): OracleFamily => {
  const paceMs = Math.max(atLeastMs, INTERVAL_MS);
  return {
    family,
    atPace,
    options: { 'temperature-interval': `${paceMs / 1_000}s` },
    machine: () => ({ files: { ...files, ...copies }, links }),
    devices: IDS.map((id) => ({ id, deviceId: id })),
    faults: faultsAt(paceMs),
    blindings: blindingsAt(paceMs),
    kernelNames: {
      first: Object.fromEntries(drives.map(({ controller, index }) => [controller, `nvme${index}`])),
      fresh: (count) => `nvme${drives.length + count}`,
      entries(device, name) {
        const { index, directory } = driveOf(device);
        return {
          [directory]: name,
          [`${directory}/nvme${index}n1`]: `${name}n1`,
          [`sys/class/nvme/nvme${index}`]: name,
          [`sys/class/block/nvme${index}n1`]: `${name}n1`,
        };
      },
    },
    replacements: [
      {
        devices: devicesOf(first),
        directory: first.directory,
        begin: (tree, count) => tree.write(`${first.directory}/serial`, () => `NEW${count}\n`),
      },
    ],
    duplicates: [
      { first: devicesOf(first), second: devicesOf(sameId), isIdentity: false, problem: 'same-name-twice', leave },
      { first: devicesOf(second), second: devicesOf(copy), isIdentity: true, problem: 'same-identity', leave },
    ],
    counter: {
      metric: 'device_nvme_read_bytes_total',
      scale: 512,
      devices: drives.map(({ namespace }) => namespace),
      path: COUNTS,
      move(tree, device, by) {
        tree.write(COUNTS(device), (line) => {
          const words = line.trim().split(' ');
          words[2] = String(BigInt(words[2] as string) + BigInt(by));
          return `${words.join(' ')}\n`;
        });
      },
    },
  };
};

export const oracle = atPace(0);
