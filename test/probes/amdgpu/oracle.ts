import { family } from '../../../src/probes/amdgpu/index.ts';
import { eventState } from '../../../src/sim/families/amdgpu/simulate.ts';
import type { Blinding, Fault, OracleFamily } from '../../oracle/family.ts';
import type { Overlay } from '../../oracle/overlaid-tree.ts';
import { hardwareOf } from '../../support/hardware.ts';

const hardware = hardwareOf(family, { amdgpu: 3 });
const { files, links } = hardware ?? { files: {}, links: {} };
const DEVICES = ['0020:10:00.0', '0020:11:00.0', '0020:12:00.0'];
/** A card, and a card of another machine that tells the same number. */
const [, FIRST, COPY] = DEVICES as [string, string, string];

const inside =
  (end: string) =>
  (device: string): string =>
    Object.keys(files).find((path) => path.includes(`/${device}/`) && path.endsWith(end)) ?? end;
const UNIQUE_ID = inside('/unique_id');
/** The directories and links of the nodes of a card, and its name in the topology of compute devices. */
const nodes = (device: string, number: number): Readonly<Record<string, string>> => {
  const at = DEVICES.indexOf(device);
  const directory = UNIQUE_ID(device).slice(0, -'/unique_id'.length);
  return Object.fromEntries(
    [[`card${at}`, `card${number}`] as const, [`renderD${128 + at}`, `renderD${128 + number}`] as const].flatMap(([built, name]) => [
      [`${directory}/drm/${built}`, name],
      [`sys/class/drm/${built}`, name],
      [`dev/dri/${built}`, name],
    ]),
  );
};
const TOPOLOGY = 'sys/class/kfd/kfd/topology';
const PROPERTIES = (device: string): string => `${TOPOLOGY}/nodes/${DEVICES.indexOf(device) + 1}/properties`;
/** The topology has the number of the card in decimal. */
const withNumber = (properties: string, unique: string): string =>
  properties.replace(/unique_id \d+/, `unique_id ${BigInt(`0x${unique.trim()}`)}`);
const EVENTS = inside('/ras/event_state');
const UMC = inside('/ras/umc_err_count');
const PAGES = inside('/ras/gpu_vram_bad_pages');
const JUNCTION = inside('/temp2_input');
const AER = inside('/aer_dev_fatal');
const STATUS = inside('/power/runtime_status');

/** Pace of the names of files, of the error counts and of the list of bad pages in the histories. */
const PACE_MS = 20_000;

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
  inFile('fatal error', 'RasFatal', EVENTS, eventState(1), { isFromPast: true }),
  inFile('uncorrectable error of the memory', 'RasUncorrectable', UMC, 'ue: 1\nce: 0\nde: 0', { paceMs: PACE_MS }),
  inFile('a page that could not be retired', 'BadPagesFailed', PAGES, '0x00000001 : 0x00001000 : F', { paceMs: PACE_MS, group: 'pages' }),
  inFile('a page that waits for a reset', 'BadPagesPending', PAGES, '0x00000001 : 0x00001000 : P', { paceMs: PACE_MS, group: 'pages' }),
  inFile('too hot', 'OverTemperature', JUNCTION, '101000'),
  inFile('fatal PCIe error', 'AerFatal', AER, 'DLP 1\nTOTAL_ERR_FATAL 1', { recovery: 'never', isFromPast: true, paceMs: 30_000 }),
];

const everything = (device: string): readonly string[] => [EVENTS, UMC, PAGES, JUNCTION, AER].map((path) => path(device));

/** Replaces one file of a device. */
function oneFile(name: string, path: (device: string) => string, overlay: Overlay, more: Partial<Blinding> = {}): Blinding {
  return {
    name: `${name} ${path(DEVICES[0] as string)
      .split('/')
      .at(-1)}`,
    scope: 'device',
    leaves: 'read',
    hides: (device) => [path(device)],
    covers: (_tree, device) => ({ [path(device)]: overlay }),
    ...more,
  };
}

const text = (content: string): Overlay => ({ kind: 'text', text: content });
const paceOf = (path: (device: string) => string): Partial<Blinding> => (path === UMC || path === PAGES ? { paceMs: PACE_MS } : {});

const blindings: readonly Blinding[] = [
  ...[EVENTS, UMC, JUNCTION].flatMap((path) => [
    oneFile('absent:', path, { kind: 'absent' }, paceOf(path)),
    oneFile('garbage:', path, text('0xzz\n'), paceOf(path)),
    oneFile('empty:', path, text(''), paceOf(path)),
    oneFile('directory:', path, { kind: 'directory' }, paceOf(path)),
  ]),
  oneFile('absent:', PAGES, { kind: 'absent' }, paceOf(PAGES)),
  oneFile('garbage:', PAGES, text('unknown\n'), paceOf(PAGES)),
  oneFile('directory:', PAGES, { kind: 'directory' }, paceOf(PAGES)),
  {
    name: 'absent: ras',
    scope: 'device',
    leaves: 'read',
    hides: (device) => [EVENTS, UMC, PAGES].map((path) => path(device)),
    covers: (_tree, device) => ({ [EVENTS(device).slice(0, -'/event_state'.length)]: { kind: 'absent' } }),
    paceMs: PACE_MS,
    // The card lists its directory again at this pace.
    returnsMs: PACE_MS + 10_000,
  },
  oneFile('not ready:', UMC, text('Query currently inaccessible\n'), paceOf(UMC)),
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
    covers: (_tree, device) => ({ [STATUS(device)]: { kind: 'hang' }, [EVENTS(device)]: { kind: 'hang' } }),
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
  options: Object.fromEntries(['facts-interval', 'ras-interval', 'bad-pages-interval'].map((name) => [name, `${PACE_MS / 1_000}s`])),
  machine() {
    const unique = files[UNIQUE_ID(FIRST)] as string;
    const copy = { [UNIQUE_ID(COPY)]: unique, [PROPERTIES(COPY)]: withNumber(files[PROPERTIES(COPY)] as string, unique) };
    return { files: { ...files, ...copy }, links };
  },
  devices: DEVICES.map((id) => ({ id, deviceId: id })),
  faults,
  blindings,
  kernelNames: {
    first: Object.fromEntries(DEVICES.map((id, at) => [id, String(at)])),
    fresh: (count) => String(DEVICES.length + count),
    entries: (device, name) => nodes(device, Number(name)),
    write(tree, device, name) {
      tree.write(PROPERTIES(device), (text) => text.replace(/drm_render_minor \d+/, `drm_render_minor ${128 + Number(name)}`));
      tree.write(`${TOPOLOGY}/generation_id`, (text) => `${Number(text) + 1}\n`);
    },
  },
  replacements: DEVICES.slice(0, 1).map((device) => ({
    devices: [device],
    directory: UNIQUE_ID(device).slice(0, -'/unique_id'.length),
    begin(tree, count) {
      const unique = count.toString(16).padStart(16, 'f');
      tree.write(UNIQUE_ID(device), () => `${unique}\n`);
      tree.write(PROPERTIES(device), (properties) => withNumber(properties, unique));
      tree.write(`${TOPOLOGY}/generation_id`, (text) => `${Number(text) + 1}\n`);
    },
  })),
  duplicates: [
    {
      first: [FIRST],
      second: [COPY],
      isIdentity: true,
      problem: 'same-identity',
      leave(tree, [device = ''], layer) {
        for (const path of Object.keys(nodes(device, 0))) if (path in links) tree.remove(layer, path);
        tree.remove(layer, `sys/bus/pci/devices/${device}`);
      },
    },
  ],
};
