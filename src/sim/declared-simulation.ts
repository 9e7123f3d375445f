import {
  type Declaration,
  type DeclaredCondition,
  type DeclaredDevices,
  type DeclaredSource,
  FACT_NAMES,
} from '../probes/declared/declaration.ts';
import { limitOf, sourceOf } from '../probes/declared/judges.ts';
import { numberOf } from '../probes/declared/source-reader.ts';
import { fill, type Words } from '../probes/kit/template.ts';
import type { FamilySimulation, FaultSpec, KernelLine, Scenario, SimulatedFault, SimulatedHardware } from './family-simulation.ts';
import { pastOf } from './fault-past.ts';

/** A device of the simulated node. */
interface Simulated {
  readonly declared: DeclaredDevices;
  readonly id: string;
  /** Below the root of the node. */
  readonly directory: string;
  readonly words: Words;
}

/** Simulates a declared family: each row with an example lays its file. Undefined when no row has one. */
export function simulationOf(declaration: Declaration): FamilySimulation | undefined {
  const { family, readings = [], conditions = [], resources = [] } = declaration;
  if (![...readings, ...conditions].some(({ example }) => example !== undefined)) return undefined;
  const resource = resources.find(({ ids }) => ids !== undefined);
  const name = resource?.resource.replaceAll('*', 'any') ?? `device-agent.dev/${family}`;
  const faulty = conditions.filter((one) => one.log !== undefined || faultText(one, declaration) !== undefined);
  const simulate = (scenario: Scenario): SimulatedHardware => {
    const devices = declaration.devices.flatMap((declared, part) =>
      declared.find.command !== undefined || declared.find.pci?.functions === 'virtual'
        ? []
        : Array.from({ length: scenario.counts[family] ?? 0 }, (_, n) => simulated(family, declared, n, part)),
    );
    const hardware = { files: {} as Record<string, string>, links: {} as Record<string, string> };
    for (const device of devices) addFiles(device, declaration, scenario, hardware);
    const held = devices.filter(({ declared: { kind } }) => resource?.kinds?.includes(kind) ?? true);
    const ids = held.map(({ id, words }) => fill(resource?.ids?.[0] ?? '{id}', { ...words, id }) ?? id);
    const lines = faulty.flatMap((one) => devices.flatMap((device) => linesOf(one, device, declaration, scenario)));
    return {
      ...hardware,
      ...(devices.length > 0 && {
        kernelLog: [{ atMs: 1, level: 6, text: `${family}: loading out-of-tree module taints kernel.` }, ...lines],
      }),
      resources: devices.length === 0 ? [] : [{ resource: name, deviceIds: [...new Set(ids)] }],
      targets: devices.map(({ id, declared: { kind }, words }) => ({ id, kind, ...(words.name !== undefined && { names: [words.name] }) })),
    };
  };
  return {
    sizes: [{ name: family, about: `${family} ${declaration.devices[0]?.kind}`, default: 0, most: 64 }],
    faults: faulty.map(
      (one): FaultSpec => ({
        name: faultName(one),
        about: one.meaning,
        kinds: one.kinds ?? [...new Set(declaration.devices.map(({ kind }) => kind))],
        ...(one.severity === 'fatal' && { isFatal: true }),
      }),
    ),
    workloads: [{ namespace: 'default', name: family, container: 'main', wants: [[name, 1]] }],
    simulate,
  };
}

const faultName = ({ type }: DeclaredCondition): string => type.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '-').toLowerCase();

/** A number in a name is that of the device; other text is of no matter. */
const filled = (text: string, words: Words, wildcard: string | number): string =>
  (fill(text, words) ?? text).replace(/[*#]/g, String(wildcard));

/** Each family has a PCI domain of its own. */
const domainOf = (family: string): string =>
  [...family]
    .reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 0xe000, 0x1000)
    .toString(16)
    .padStart(4, '0');

function simulated(family: string, declared: DeclaredDevices, n: number, part: number): Simulated {
  const { find, id, facts = {} } = declared;
  const address = `${domainOf(family)}:${(0x10 + n).toString(16)}:${part.toString(16).padStart(2, '0')}.0`;
  const place = find.sysfs === undefined ? `bus/pci/devices/${address}` : filled(find.sysfs, {}, n);
  const name = place.split('/').at(-1) as string;
  const words: Record<string, string | undefined> = { 1: String(n), 2: String(n), 3: String(n), name };
  if (find.sysfs === undefined) words.pci = words.pciAddress = name;
  const exampleOf = (fact: string | DeclaredSource | undefined): string | undefined =>
    typeof fact === 'object' && fact.example === undefined
      ? undefined
      : fill(String(typeof fact === 'object' ? fact.example : fact), words);
  for (const fact of FACT_NAMES) if (facts[fact] !== undefined) words[fact] = exampleOf(facts[fact]);
  return { declared, id: exampleOf(id) ?? name, directory: `sys/${place}`, words };
}

function addFiles(
  device: Simulated,
  declaration: Declaration,
  scenario: Scenario,
  { files, links }: { files: Record<string, string>; links: Record<string, string> },
): void {
  const { declared, directory, words, id } = device;
  const { readings = [], conditions = [] } = declaration;
  const isOfKind = ({ kinds }: { readonly kinds?: readonly string[] }): boolean => kinds?.includes(declared.kind) ?? true;
  const beats = new Set(conditions.filter(({ still }) => still !== undefined).map((one) => sourceOf(one, readings)));
  const seconds = (ms: number): number => Math.floor(ms / 1_000);
  const put = (path: string, text: string | number): void => {
    files[path] ??= `${text}\n`;
  };
  const lay = (source: DeclaredSource, fault?: DeclaredCondition, type?: string): void => {
    const { file, link, entry } = source;
    const example = exampleOf(source, declaration);
    if (example === undefined) return;
    const text = fill(String(example), words) ?? String(example);
    if (link !== undefined) links[`${directory}/${link}`] = `../${text}`;
    if (entry !== undefined) put(`${directory}/${filled(entry, words, text)}/uevent`, '');
    if (file === undefined) return;
    const path = file.startsWith('/') ? filled(file, words, words[1] ?? 0).slice(1) : `${directory}/${filled(file, words, words[1] ?? 0)}`;
    const past = fault === undefined ? undefined : pastOf(scenario, faultName(fault), id);
    const wrong = past?.isOn === true && fault !== undefined ? faultText(fault, declaration) : undefined;
    const count = numberOf(text);
    // A heartbeat stands while its fault lasts. Other counters count what pods do.
    const grown = beats.has(source) ? scenario.elapsedMs - (past?.totalMs ?? 0) : (scenario.use?.[id]?.activeMs ?? scenario.elapsedMs);
    const isMoving = count !== undefined && (type === 'counter' || beats.has(source));
    put(path, isMoving ? Number(count) + seconds(grown) : (wrong ?? text));
  };
  const faultOf = (source: DeclaredSource): DeclaredCondition | undefined =>
    conditions.filter(isOfKind).find((one) => sourceOf(one, readings) === source);
  // What a fault changes comes first: several rows may read one file.
  for (const condition of conditions.filter(isOfKind)) {
    if (pastOf(scenario, faultName(condition), id).isOn) lay(sourceOf(condition, readings), condition);
  }
  for (const condition of conditions.filter(isOfKind)) {
    lay(sourceOf(condition, readings), condition, readings.find(({ metric }) => metric === condition.reading)?.type);
    lay(limitOf(condition) ?? {});
  }
  for (const reading of readings.filter(isOfKind)) lay(reading, faultOf(reading), reading.type);
  for (const fact of [...Object.values(declared.facts ?? {}), declared.id, ...(declared.aliases ?? [])])
    if (typeof fact === 'object') lay(fact);
  if (declared.find.pci !== undefined) addFunction(device, declaration.pcie === true, put, links);
}

function addFunction(
  { declared: { find }, directory, words: { name } }: Simulated,
  hasLink: boolean,
  put: (path: string, text: string | number) => void,
  links: Record<string, string>,
): void {
  const { vendor = '0x1ab8', devices = ['0x0001'], class: code = '12', drivers = [] } = find.pci ?? {};
  const link = { current_link_speed: '16.0 GT/s PCIe', max_link_speed: '16.0 GT/s PCIe', current_link_width: 16, max_link_width: 16 };
  const texts = { vendor, device: devices[0] as string, class: `0x${code.padEnd(6, '0')}`, power_state: 'D0', ...(hasLink && link) };
  for (const [file, text] of Object.entries(texts)) put(`${directory}/${file}`, text);
  const [driver] = drivers;
  if (driver === undefined) return;
  links[`${directory}/driver`] = `../../drivers/${driver}`;
  links[`sys/bus/pci/drivers/${driver}/${name}`] = `../../devices/${name}`;
}

/** Several rows may read one file, and one of them has the example. */
const exampleOf = (source: DeclaredSource, { readings = [], conditions = [] }: Declaration): DeclaredSource['example'] =>
  source.example ?? [...readings, ...conditions].find(({ file, example }) => file === source.file && example !== undefined)?.example;

/** What the file of a condition holds while its fault lasts. Undefined when a text cannot say it. */
function faultText(condition: DeclaredCondition, declaration: Declaration): string | undefined {
  const { equals, above, below, still } = condition;
  const source = sourceOf(condition, declaration.readings ?? []);
  const { map, scale = 1, offset = 0, file } = source;
  const example = exampleOf(source, declaration);
  if (file === undefined || example === undefined) return undefined;
  if (still !== undefined) return String(example);
  if (equals !== undefined) {
    const values = equals.map(String);
    return map === undefined ? values[0] : Object.keys(map).find((text) => values.includes(String(map[text])));
  }
  const bound = above ?? below;
  const limit = typeof bound === 'object' ? numberOf(String(exampleOf(bound, declaration)), bound) : bound;
  if (limit === undefined) return undefined;
  const beyond = Number(limit) + (above === undefined ? -1 : 1) * Math.max(1, Math.abs(Number(limit)) / 10);
  return String(Math.round((beyond - offset) / scale));
}

/** The lines of the kernel log that begin and end the faults of one condition on one device. */
function linesOf(
  { type, log }: DeclaredCondition,
  { id, words, directory }: Simulated,
  { lines = [] }: Declaration,
  scenario: Scenario,
): KernelLine[] {
  if (log === undefined) return [];
  const [begin, end] = [lines.find(({ condition }) => condition === type), lines.find(({ ends }) => ends?.includes(type) === true)];
  const subsystem = directory.split('/')[2] as string;
  const say = (line: typeof begin, atMs: number | undefined): KernelLine[] => {
    if (line === undefined || atMs === undefined || atMs > scenario.elapsedMs) return [];
    const text = line.text.replace(/\{\w+\}|#/g, '1').replaceAll('*', '');
    if (line.device !== undefined) return [{ atMs, text }];
    return [{ atMs, text: `${line.drivers[0]} ${words.name}: ${text}\n SUBSYSTEM=${subsystem}\n DEVICE=+${subsystem}:${words.name}` }];
  };
  const ofDevice = ({ name, device }: SimulatedFault): boolean => name === faultName({ type } as DeclaredCondition) && device === id;
  return (scenario.faults ?? []).filter(ofDevice).flatMap(({ fromMs, untilMs }) => [...say(begin, fromMs), ...say(end, untilMs)]);
}
