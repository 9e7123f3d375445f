import { hopper, MIB, type ScriptedGpu } from './scripted-script.ts';

type Pick = (below: number) => number;
type Numbers = Record<string, number | string>;

/** Values of one call, or none of them. */
const TOGETHER: readonly (readonly string[])[] = [
  ['memory_total', 'memory_used', 'memory_reserved'],
  ['bar1_total', 'bar1_used'],
  ['protected_total', 'protected_used'],
  ['util_gpu', 'util_memory'],
  ['ecc_current', 'ecc_pending'],
  ['limit_minimum', 'limit_maximum'],
  ['remap_corr', 'remap_unc', 'remap_pending', 'remap_failure'],
  ['banks_max', 'banks_high', 'banks_partial', 'banks_low', 'banks_none'],
  ['sram_l2', 'sram_sm', 'sram_pcie', 'sram_mcu', 'sram_other', 'sram_exceeded'],
  ['repair_channel', 'repair_tpc'],
  ['slot', 'tray', 'host', 'chassis'],
  ['fabric_state', 'fabric_status', 'fabric_mask', 'fabric_summary'],
];
/** The command says nothing of a board whose infoROM the driver cannot check. */
const NEVER_LEFT_OUT = /^(?:uuid|name|bus_id|pci_device|mig_|event_types|gsp|inforom)/;
const FLAGS = /^(?:persistence|unrepairable|sram_exceeded)$|^ecc_(?:current|pending)$|^repair_|^remap_(?:pending|failure)$/;

/** Values that a GPU supports. They stay the same while the driver is loaded. */
export interface Support {
  readonly index: number;
  readonly absent: ReadonlySet<string>;
  readonly architecture: number;
  readonly brand: number;
  readonly hasMargins: boolean;
}

export function randomSupport(pick: Pick, index: number): Support {
  const names = [...Object.keys(hopper(index).values), ...Object.keys(FIELDS)].filter((name) => !NEVER_LEFT_OUT.test(name));
  const left = new Set(names.filter(() => pick(6) === 0));
  for (const group of TOGETHER)
    for (const name of group)
      if (left.has(group[0] as string)) left.add(name);
      else left.delete(name);
  return { index, absent: left, architecture: 5 + pick(6), brand: [2, 5, 13, 14][pick(4)] as number, hasMargins: pick(2) === 0 };
}

/** Keyed by `id scope`: a value in the library's unit that the command can also print. */
const FIELDS: Readonly<Record<string, (pick: Pick) => number>> = {
  '82 0': (pick) => pick(110),
  '186 0': (pick) => pick(70_000) * 10,
  '185 0': (pick) => pick(70_000) * 10,
  '186 1': (pick) => pick(70_000) * 10,
  '186 2': (pick) => pick(7_000) * 10,
  '185 1': (pick) => pick(70_000) * 10,
  '185 2': (pick) => pick(7_000) * 10,
  '95 0': (pick) => pick(5),
  '74 0': (pick) => pick(9_999_999) * 1_000,
  '76 0': (pick) => pick(2) * 1_000,
  '269 0': (pick) => pick(9_999_999) * 1_000,
  '270 0': (pick) => pick(9_999_999) * 1_000,
  '271 0': (pick) => pick(9_999_999) * 1_000,
  '230 0': (pick) => pick(8),
  '29 0': (pick) => pick(70),
  '30 0': (pick) => pick(70),
  '31 0': (pick) => pick(2),
};
const MARGINS = ['193 0', '194 0', '195 0', '196 0'];
/** Values that the driver may fail to read, with the same text from both sources. */
const MAY_FAIL = new Set(['82 0', '185 0', '95 0', '74 0']);

/** A GPU in a random state, with or without MIG. */
export function randomGpu(pick: Pick, { index, absent, architecture, brand, hasMargins }: Support): ScriptedGpu {
  const isSplit = pick(3) === 0;
  const base = Object.entries(hopper(index).values).map(([name, value]) => [name, randomValue(pick, name, value)] as const);
  const values: Numbers = Object.fromEntries(base);
  for (const name of Object.keys(values)) if (/^ecc\./.test(name)) delete values[name];
  for (const location of architecture <= 5 ? [2, 3] : [2, 7])
    for (const kind of ['0.0', '1.0', '0.1', '1.1']) values[`ecc.${kind}.${location}`] = pick(3) * pick(200);
  Object.assign(values, { architecture, brand, mig_current: Number(isSplit), mig_pending: pick(2) });
  const limits = ['shutdown', 'slowdown', 'memory', 'gpu'].map((limit) => [`threshold_${limit}`, 60 + pick(40)]);
  if (!hasMargins) Object.assign(values, Object.fromEntries(limits));
  const isHidden = (name: string): boolean => absent.has(name) || (isSplit && /^(?:util_|remap_)/.test(name));
  const told = Object.fromEntries(Object.entries(values).filter(([name]) => !isHidden(name)));
  const drawn = Object.entries(FIELDS).map(([id, draw]) => [id, MAY_FAIL.has(id) && pick(9) === 0 ? 'code 999' : draw(pick)] as const);
  const margins = hasMargins ? MARGINS.map((id) => [id, -pick(12)] as const) : [];
  const fields = Object.fromEntries([...drawn.filter(([id]) => !absent.has(id)), ...margins]);
  const instances = isSplit ? randomInstances(pick, index) : {};
  return { values: told, fields, processes: randomProcesses(pick, Object.values(instances)), instances };
}

function randomValue(pick: Pick, name: string, value: number | string): number | string {
  if (FLAGS.test(name)) return pick(4) === 0 ? 1 : 0;
  if (/^(?:memory|bar1|protected)_/.test(name)) return pick(90_000) * MIB;
  if (/^(?:power|limit_)/.test(name)) return pick(70_000) * 10;
  if (/^util_/.test(name)) return pick(101);
  const ranges: Readonly<Record<string, readonly [number, number]>> = {
    temperature: [20, 80],
    margin: [-5, 60],
    pstate: [0, 16],
    reasons: [0, 0x800],
    fabric_state: [0, 4],
    fabric_summary: [0, 4],
    pcie_width: [1, 16],
    fan: [0, 101],
  };
  const range = ranges[name];
  if (range !== undefined) return range[0] + pick(range[1]);
  const words: Readonly<Record<string, readonly number[]>> = { compute_mode: [0, 2, 3], fabric_status: [0, 3, 999] };
  const known = words[name];
  if (known !== undefined) return known[pick(known.length)] as number;
  return typeof value === 'number' && /^(?:clock|max_clock|remap|banks|sram|pcie|encoder)/.test(name) ? pick(3_000) : value;
}

/** With gaps between their numbers; two may share a GPU instance. */
function randomInstances(pick: Pick, index: number): Record<number, Numbers> {
  const numbers = [0, 1, 2, 3, 4, 5].filter(() => pick(2) === 0);
  const isShared = pick(2) === 0;
  return Object.fromEntries(
    numbers.map((number, at) => [
      number,
      {
        uuid: `MIG-${index}1111111-2222-4333-8444-00000000000${number}`,
        name: `NVIDIA H100 80GB HBM3 MIG ${1 + (number % 2)}g.10gb`,
        gi: isShared ? 1 + (at >> 1) : 1 + at,
        ci: isShared ? at & 1 : 0,
        multiprocessors: 16 + pick(20),
        memory_total: 9_984 * MIB,
        memory_used: pick(9_984) * MIB,
        memory_reserved: 0,
        bar1_total: 16_383 * MIB,
        bar1_used: pick(9) * MIB,
        'ecc.1.0.7': pick(2),
      },
    ]),
  );
}

function randomProcesses(pick: Pick, instances: readonly Numbers[]): string[] {
  return ['C', 'G'].flatMap((kind) =>
    [4711, 4712, 815]
      .filter(() => pick(2) === 0)
      .map((pid) => {
        const inside = instances[pick(instances.length + 1)];
        const memory = pick(5) === 0 ? 'none' : pick(9_000) * MIB;
        return `${kind} ${pid} ${memory}${inside === undefined ? '' : ` ${inside.gi} ${inside.ci}`}`;
      }),
  );
}
