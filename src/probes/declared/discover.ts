import { basename } from 'node:path';
import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { mayBeOnBus } from '../../host/pci/functions.ts';
import { isPciAddress, normalizePciAddress, pciAddressOf } from '../../host/pci/pci.ts';
import type { BusHardware } from '../../model/declaration.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import { readPciFunction } from '../kit/pcie/function.ts';
import { captureWords, fill, plain, type Words } from '../kit/template.ts';
import {
  ADDRESS_FACTS,
  type Declaration,
  type DeclaredDevices,
  type DeclaredPci,
  type DeclaredPlace,
  FACT_NAMES,
  type Fact,
  type FactName,
  NUMBER_FACTS,
} from './declaration.ts';
import { findMatches, fixedPart } from './glob.ts';
import { type CommandRows, type Row, rowWith } from './rows.ts';
import type { Entry, SourceReader } from './source-reader.ts';

/** A device and the texts for its templates. */
export interface DeclaredDevice {
  readonly device: Device;
  readonly words: Words;
}

/** Reads the facts of one device. Undefined when its id cannot be read. */
export function readDevice(family: string, declared: DeclaredDevices, entry: Entry, reader: SourceReader): DeclaredDevice | undefined {
  const texts = readFacts(declared, entry, reader);
  const { sys } = reader.host;
  const address = texts.pciAddress ?? entry.words.pci;
  const words: Words = { ...entry.words, ...texts, ...defined({ pciAddress: address }) };
  const id = textOf(declared.id, entry, words, reader);
  if (id === undefined) return undefined;
  const known: Words = { ...words, id };
  const one = (fact: Fact | undefined): string | undefined => (fact === undefined ? undefined : textOf(fact, entry, known, reader));
  const aliases = (declared.aliases ?? []).flatMap((alias) => textsOf(alias, entry, known, reader)).filter((alias) => alias !== id);
  const nodes = (declared.nodes ?? []).map((node) => fill(node, known)).filter(isNode);
  const parent = one(declared.parent);
  const device: Device = {
    family,
    id,
    ...(declared.identity === undefined ? {} : { identity: one(declared.identity) ?? null }),
    kind: declared.kind,
    aliases: [...new Set(aliases)],
    ...defined({ parent }),
    ...(address === undefined ? {} : readPciFunction(sys, address)),
    ...typed(texts),
    ...(nodes.length === 0 ? {} : { characterDevices: nodes }),
  };
  return { device, words: known };
}

/** Facts that are read come first, because templates use them. */
function readFacts({ facts = {} }: DeclaredDevices, entry: Entry, reader: SourceReader): Partial<Record<FactName, string>> {
  const texts: Partial<Record<FactName, string>> = {};
  const names = FACT_NAMES.filter((name) => facts[name] !== undefined);
  const isTemplate = (name: FactName): boolean => typeof facts[name] === 'string';
  for (const name of [...names.filter((each) => !isTemplate(each)), ...names.filter(isTemplate)]) {
    const text = textOf(facts[name] as Fact, entry, { ...entry.words, ...texts }, reader);
    const fact = text === undefined ? undefined : factOf(name, text);
    if (fact !== undefined) texts[name] = fact;
  }
  return texts;
}

function factOf(name: FactName, text: string): string | undefined {
  if ((ADDRESS_FACTS as readonly string[]).includes(name)) return normalizePciAddress(text);
  if ((NUMBER_FACTS as readonly string[]).includes(name)) return /^\d{1,9}$/.test(text) ? text : undefined;
  return text;
}

const typed = (texts: Partial<Record<FactName, string>>): Partial<Device> =>
  Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, (NUMBER_FACTS as readonly string[]).includes(name) ? Number(text) : text]),
  );

const textOf = (fact: Fact, entry: Entry, words: Words, reader: SourceReader): string | undefined => textsOf(fact, entry, words, reader)[0];

function textsOf(fact: Fact, entry: Entry, words: Words, reader: SourceReader): readonly string[] {
  const texts =
    typeof fact === 'string'
      ? [fill(fact, words)]
      : reader
          .read(fact, { ...entry, words })
          .values.map(({ text }) => (fact.as === undefined ? text : fill(fact.as, { ...words, value: text })));
  return texts.map(named).filter((text) => text !== undefined);
}

const named = (text: string | undefined): string | undefined => (text === undefined ? undefined : plain(text) || undefined);

/** A node lies below `/dev` in plain words. */
const isNode = (path: string | undefined): path is string => path !== undefined && /^\/dev\/[\w./@:-]+$/.test(path) && !path.includes('..');

const PCI = 'bus/pci/devices';
/** Limit of devices of one declared family. */
export const MOST_DEVICES = 1_024;

/** The places of one kind of device. `absent`: the machine has no trace of it. */
interface Discovery {
  readonly entries: readonly Entry[];
  readonly state: 'complete' | 'partial' | 'absent';
  /** Why the list is partial, when a directory is the reason. */
  readonly error?: string;
  readonly isCut: boolean;
}

const ABSENT: Discovery = { entries: [], state: 'absent', isCut: false };

/** Finds the devices of one kind. */
export function discover(host: Host, { find, rows }: DeclaredDevices, commands: CommandRows): Discovery {
  if (find.command !== undefined) return inRows(find.command, commands);
  const place = find.sysfs === undefined ? pciFunctions(host.sys, find.pci ?? {}) : directories(host.sys, find.sysfs);
  return { ...place, entries: place.entries.map((entry) => ({ ...entry, rows: rowsOf(rows ?? {}, entry.words, commands) })) };
}

function directories(sys: Tree, glob: string): Discovery {
  const fixed = fixedPart(glob);
  const listing = sys.listing(fixed === '' ? '.' : fixed);
  if (listing.error === 'ENOENT') return ABSENT;
  const { matches, error, isCut } = findMatches(sys, glob, MOST_DEVICES);
  const entries = matches.map(({ path, captures }): Entry => {
    const pci = pciAddressOf(sys, path) ?? pciAddressOf(sys, `${path}/device`);
    return { directory: path, words: { ...captureWords(captures), name: basename(path), ...defined({ pci }) }, rows: {} };
  });
  const failure = listing.error ?? error;
  if (failure !== undefined) return { entries, state: 'partial', error: `listing /sys/${fixed} fails with ${failure}`, isCut };
  return { entries, state: 'complete', isCut };
}

function pciFunctions(sys: Tree, wanted: DeclaredPci): Discovery {
  const { names, error } = sys.listing(PCI);
  if (names === undefined)
    return error === 'ENOENT' ? ABSENT : { ...ABSENT, state: 'partial', error: `listing /sys/${PCI} fails with ${error}` };
  const judged = names.filter(isPciAddress).map((name) => ({ name, fit: fitOf(sys, `${PCI}/${name}`, wanted) }));
  const found = judged.filter(({ fit }) => fit === true).map(({ name }) => name);
  const unclear = judged.find(({ fit }) => fit === undefined);
  const entries = found
    .slice(0, MOST_DEVICES)
    .map((name): Entry => ({ directory: `${PCI}/${name}`, words: { name, pci: name }, rows: {} }));
  const isCut = found.length > MOST_DEVICES;
  if (unclear === undefined) return { entries, state: 'complete', isCut };
  return { entries, state: 'partial', error: `the ids of the PCI function ${unclear.name} cannot be read`, isCut };
}

/** Undefined when an id cannot be read, so that the function may be a device of the family. */
function fitOf(sys: Tree, directory: string, { vendor, devices, class: code, drivers, functions }: DeclaredPci): boolean | undefined {
  let isUnclear = false;
  const fits = (file: string, test: (id: string) => boolean): boolean => {
    const { text, error } = sys.read(`${directory}/${file}`);
    // A function that left the bus is no device.
    if (text === undefined && error !== 'ENOENT') isUnclear = true;
    return text === undefined ? isUnclear : test(text.trim().toLowerCase());
  };
  if (drivers !== undefined && !drivers.includes(basename(sys.link(`${directory}/driver`) ?? ''))) return false;
  if (functions !== undefined && (sys.link(`${directory}/physfn`) !== undefined) !== (functions === 'virtual')) return false;
  if (vendor !== undefined && !fits('vendor', (id) => id === vendor)) return false;
  if (code !== undefined && !fits('class', (id) => id.startsWith(`0x${code}`))) return false;
  if (devices !== undefined && !fits('device', (id) => devices.includes(id))) return false;
  return isUnclear ? undefined : true;
}

function inRows(command: string, commands: CommandRows): Discovery {
  const rows = commands.rows(command);
  // The program may be absent where the hardware is absent. If it failed or may not run, devices may exist.
  if (rows === undefined) return { ...ABSENT, state: commands.areIncomplete ? 'partial' : 'absent' };
  const entries = rows.slice(0, MOST_DEVICES).map((row, n): Entry => ({ words: { name: String(n) }, rows: { [command]: row } }));
  return { entries, state: 'complete', isCut: rows.length > MOST_DEVICES };
}

function rowsOf(keys: Readonly<Record<string, string>>, words: Words, commands: CommandRows): Readonly<Record<string, Row | undefined>> {
  return Object.fromEntries(
    Object.entries(keys).map(([name, template]) => {
      const [rows, key, text] = [commands.rows(name), commands.keyOf(name), fill(template, words)];
      return [name, rows === undefined || key === undefined || text === undefined ? undefined : rowWith(rows, key, text)];
    }),
  );
}

/** Physical functions of the bus that are devices of the family: declared, or those that a place names by vendor and class or id. */
export function hardwareOf({ bus, devices, summary }: Declaration): readonly BusHardware[] {
  const what = summary.replace(/\.$/, '');
  if (bus !== undefined)
    return bus.map(({ class: code, wanted, ...one }) => ({
      ...{ what, ...one },
      ...(code !== undefined && { classes: [code] }),
      ...(wanted === true && { isAlwaysWanted: true }),
    }));
  return devices.flatMap(({ kind, find: { pci } }): BusHardware[] => {
    const { vendor, class: code, devices: ids, drivers, functions } = pci ?? {};
    if (vendor === undefined || (code ?? ids) === undefined || functions === 'virtual') return [];
    return [{ what, kind, vendor, ...defined({ classes: code === undefined ? undefined : [code], devices: ids, drivers }) }];
  });
}

/**
 * Returns a check of whether the machine may have devices of the family. It lists directories and opens no file of a device, except ids of
 * PCI functions that it has not seen before.
 */
export function presenceOf(declaration: Declaration, exists: (path: string) => boolean): (host: Host) => boolean {
  const judged = new Map<string, boolean>();
  const isFunction = (sys: Tree, wanted: DeclaredPci): boolean => {
    const { names, error } = sys.listing(PCI);
    if (names === undefined) return error !== 'ENOENT';
    // A driver can be bound later, so only lasting properties are remembered.
    const { drivers, ...lasting } = wanted;
    const isBound = (driver: string): boolean => sys.list(`bus/pci/drivers/${driver}`).some(isPciAddress);
    if (drivers !== undefined && !drivers.some(isBound)) return false;
    const key = JSON.stringify([sys.root, lasting, names]);
    const known = judged.get(key) ?? names.some((name) => isPciAddress(name) && fitOf(sys, `${PCI}/${name}`, lasting) !== false);
    if (judged.size > 16) judged.clear();
    judged.set(key, known);
    return known;
  };
  const isAt = (host: Host, { sysfs, pci, command }: DeclaredPlace): boolean => {
    if (sysfs !== undefined) {
      const { matches, error } = findMatches(host.sys, sysfs, 1);
      return matches.length > 0 || error !== undefined;
    }
    if (pci !== undefined) return isFunction(host.sys, pci);
    const program = declaration.commands?.[command ?? ''];
    return program !== undefined && (program.captured !== undefined || program.optional !== true || exists(program.path));
  };
  const hardware = hardwareOf(declaration);
  return (host) => declaration.devices.some(({ find }) => isAt(host, find)) || mayBeOnBus(host.sys, hardware);
}
