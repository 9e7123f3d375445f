import { type Declaration, type DeclaredDevices, type DeclaredSource, FACT_NAMES } from '../probes/declared/declaration.ts';
import { limitOf, sourceOf } from '../probes/declared/judges.ts';
import { fill, type Words } from '../probes/kit/template.ts';
import type { FamilySimulation, Scenario, SimulatedHardware } from './family-simulation.ts';

/** Files and links of the node, by path. A path that is laid twice keeps its first text, because several rows may read one file. */
class Laid {
  readonly files: Record<string, string> = {};
  readonly links: Record<string, string> = {};

  put(path: string, text: string | number): void {
    this.files[path] ??= `${text}\n`;
  }
}

/** Simulates a declared family: each row with an example lays its file. Undefined when no row has one. */
export function simulationOf(declaration: Declaration): FamilySimulation | undefined {
  const { family, readings = [], conditions = [], resources = [] } = declaration;
  if (![...readings, ...conditions].some(({ example }) => example !== undefined)) return undefined;
  const resource = resources.find(({ ids }) => ids !== undefined);
  const name = resource?.resource.replaceAll('*', 'any') ?? `device-agent.dev/${family}`;
  const simulate = (scenario: Scenario): SimulatedHardware => {
    const laid = new Laid();
    const ids = declaration.devices.flatMap((declared, part) =>
      declared.find.command !== undefined || declared.find.pci?.functions === 'virtual'
        ? []
        : Array.from({ length: scenario.counts[family] ?? 0 }, (_, n) => {
            const words = layDevice(laid, declaration, declared, n, part, scenario);
            return resource?.kinds?.includes(declared.kind) === false ? undefined : fill(resource?.ids?.[0] ?? '{id}', words);
          }),
    );
    const deviceIds = [...new Set(ids.filter((id) => id !== undefined))];
    return { files: laid.files, links: laid.links, resources: deviceIds.length === 0 ? [] : [{ resource: name, deviceIds }] };
  };
  return {
    sizes: [{ name: family, about: `${family} ${declaration.devices[0]?.kind}`, default: 0, most: 64 }],
    faults: [],
    workloads: [{ namespace: 'default', name: family, container: 'main', wants: [[name, 1]] }],
    simulate,
  };
}

/** Each family has a PCI domain of its own. */
const domainOf = (family: string): string =>
  [...family]
    .reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 0xe000, 0x1000)
    .toString(16)
    .padStart(4, '0');

/** Lays the files of one device, and returns the words of its templates. */
function layDevice(
  laid: Laid,
  { family, readings = [], conditions = [] }: Declaration,
  { kind, find, id, facts = {}, aliases = [] }: DeclaredDevices,
  n: number,
  part: number,
  { elapsedMs, use }: Scenario,
): Words {
  const place = find.sysfs?.replace(/[*#]/g, String(n)) ?? `bus/pci/devices/${domainOf(family)}:${(0x10 + n).toString(16)}:0${part}.0`;
  const [directory, name] = [`sys/${place}`, place.split('/').at(-1)];
  const words: Record<string, string | undefined> = { 1: String(n), 2: String(n), 3: String(n), name };
  if (find.pci !== undefined) words.pci = words.pciAddress = name;
  const rows = [...readings, ...conditions].filter(({ kinds }) => kinds?.includes(kind) ?? true);
  const beats = new Set(conditions.filter(({ still }) => still !== undefined).map((one) => sourceOf(one, readings)));
  const lay = (source: DeclaredSource, isMoving = false): string | undefined => {
    const { file, link, entry, example } = source;
    const text = example === undefined ? undefined : fill(String(example), words);
    if (text === undefined) return undefined;
    // A number in a name is that of the device.
    const path = (fill(file ?? entry ?? '', words) ?? '').replace(/[*#]/g, file === undefined ? text : String(n));
    // A heartbeat moves all the time, and other counters while a pod works.
    const movedMs = beats.has(source) ? elapsedMs : (use?.[words.id ?? '']?.activeMs ?? elapsedMs);
    if (link !== undefined) laid.links[`${directory}/${link}`] = `../${text}`;
    else if (file === undefined) laid.put(`${directory}/${path}/uevent`, '');
    else
      laid.put(path.startsWith('/') ? path.slice(1) : `${directory}/${path}`, isMoving ? Number(text) + Math.floor(movedMs / 1_000) : text);
    return text;
  };
  for (const fact of FACT_NAMES) {
    const declared = facts[fact];
    if (declared !== undefined) words[fact] = typeof declared === 'string' ? fill(declared, words) : lay(declared);
  }
  words.id = (typeof id === 'string' ? fill(id, words) : lay(id)) ?? name;
  for (const alias of aliases) if (typeof alias === 'object') lay(alias);
  for (const row of rows) {
    lay(row, beats.has(row) || ('metric' in row && row.type === 'counter'));
    if (!('metric' in row)) lay(limitOf(row) ?? {});
  }
  if (find.pci !== undefined) {
    const { vendor = '0x1ab8', devices: [device = ''] = ['0x0001'], class: code = '12', drivers: [driver] = [] } = find.pci;
    for (const [file, text] of Object.entries({ vendor, device, class: `0x${code.padEnd(6, '0')}`, power_state: 'D0' }))
      laid.put(`${directory}/${file}`, text);
    if (driver !== undefined) {
      laid.links[`${directory}/driver`] = `../../drivers/${driver}`;
      laid.links[`sys/bus/pci/drivers/${driver}/${name}`] = `../../devices/${name}`;
    }
  }
  return words;
}
