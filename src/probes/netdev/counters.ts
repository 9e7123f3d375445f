import type { Tree } from '../../host/fs/tree.ts';
import { countOf } from '../kit/text.ts';
import { COUNTERS, type CounterRow, type SettingRow } from './metrics.ts';

/** Counters of one function by the names of their rows. A counter that the source does not give is absent. Packets that were dropped are no fault. */
export type Counters = Readonly<Record<string, bigint>>;

/** Settings of one virtual function by the names of their rows. */
export type Settings = Readonly<Partial<Record<SettingRow['name'], number>>>;

/** The kernel answers 0 for all counters when the driver has none, so only another value shows that the driver counts. */
export const hasCounted = (counters: Counters): boolean => Object.values(counters).some((count) => count > 0n);

/** What the driver of a physical function (PF) tells of one of its virtual functions (VFs). A fact that it does not tell is absent. */
export interface VirtualFunction {
  /** Number of the VF: the N of the PF's `virtfnN`. */
  readonly number: number;
  readonly settings: Settings;
  readonly counters?: Counters;
}

/** What one source tells of a physical function's interface and its virtual functions. */
export interface LinkDescription {
  readonly name: string;
  readonly index: number;
  /** Lower case; absent for a link without an address. */
  readonly hardwareAddress?: string;
  /** PCI address of the device below the link. Kernels before 5.14 do not tell it. */
  readonly parentDevice?: string;
  readonly functions: readonly VirtualFunction[];
}

/** Limit of virtual functions of one physical function: the PCI capability counts them with 16 bits. */
export const MOST_FUNCTIONS = 65_535;

/** Collects the counters that a source has. */
export function countersOf(rows: readonly CounterRow[], read: (row: CounterRow) => bigint | undefined): Counters {
  const counters: Record<string, bigint> = {};
  for (const row of rows) {
    const count = read(row);
    if (count !== undefined) counters[row.name] = count;
  }
  return counters;
}

/**
 * Parses the file `stats` of one virtual function, as the drivers of MLNX_OFED and bnxt_en write it: one `name : value` per line. The name
 * is the first word, and other names are passed over.
 */
export function parseStatsText(text: string): Counters {
  const lines = new Map(
    [...text.matchAll(/^[^\S\n]*(\w{1,64})[^\S\n]*:[^\S\n]*(\d{1,20})[^\S\n]*$/gm)].map(([, name, digits]) => [name, digits]),
  );
  return countersOf(COUNTERS, ({ name }) => countOf(lines.get(name) ?? ''));
}

/**
 * Reads what a driver has in sysfs on one virtual function of a physical function. Undefined when it has nothing there. `directory` is the
 * directory of the physical function on the PCI bus. The three forms: a file (MLNX_OFED, bnxt_en), a directory of files (Intel's own drivers), and `vf<N>_statistics` (mlx4).
 */
export function readDriverFiles(sys: Tree, directory: string, interfaceName: string | undefined, number: number): Counters | undefined {
  const path = `${directory}/sriov/${number}/stats`;
  const { text, error } = sys.read(path);
  if (text !== undefined) return present(parseStatsText(text));
  if (error === 'EISDIR') return present(readCounterFiles(sys, path));
  if (error !== 'ENOENT' || interfaceName === undefined) return undefined;
  return present(readCounterFiles(sys, `${directory}/net/${interfaceName}/vf${number}_statistics`));
}

/** Reads the counters in a directory of files with one number each. */
function readCounterFiles(sys: Tree, directory: string): Counters {
  const names = sys.list(directory);
  return countersOf(COUNTERS, ({ name }) => (names.includes(name) ? countIn(sys.reread(`${directory}/${name}`).text) : undefined));
}

const countIn = (text: string | undefined): bigint | undefined => countOf(text?.trim() ?? '');

const present = (counters: Counters): Counters | undefined => (Object.keys(counters).length === 0 ? undefined : counters);

/**
 * Counters in the directory of an interface; undefined without any. `how`: `read` for an interface that a container may get, because an
 * open file follows it there.
 */
export function readInterface(sys: Tree, directory: string, rows: readonly CounterRow[], how: 'read' | 'reread'): Counters | undefined {
  const read = ({ file }: CounterRow) => (file === undefined ? undefined : countIn(sys[how](`${directory}/${file}`).text));
  return present(countersOf(rows, read));
}
