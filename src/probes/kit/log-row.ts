import { basename } from 'node:path';
import type { Tree } from '../../host/fs/tree.ts';
import type { KmsgRecord } from '../../host/kernel-log/record.ts';
import { onceInTurn } from '../../host/kernel-log/shared.ts';
import { pciAddressOf } from '../../host/pci/pci.ts';
import type { Fault } from '../../model/fault.ts';
import type { ConditionSpec, Remedy, Severity } from '../../model/health.ts';
import type { Labels, MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import { type Growing, growthCondition } from './finding.ts';
import { fill } from './template.ts';

/**
 * A line of a driver and what it means. A family declares its rows, and the first one that fits a record decides. Only a record of the
 * kernel counts. It belongs to the device that the kernel added to it (`dev_printk`), which no process can imitate.
 * A row that neither raises, ends, repeats nor has a fault is noise: the line is known and means nothing for the verdict.
 */
export interface LogRow {
  /** kebab-case, unique in the family: `command-timeout`. The label `event` of its counter. */
  readonly name: string;
  /** Words that the driver may begin the line with: its name, or that of the bus or class of a device without driver. Empty: any driver. */
  readonly drivers: readonly string[];
  /** Form of the text behind `<driver> <device>: `. Named groups fill `{name}` in the texts below. */
  readonly text: LineForm;
  /** What the line means. It is the message of its condition or fault. */
  readonly means: string;
  /** File of the kernel, or text of the vendor, that has the line. */
  readonly source: string;
  /** Words for the text of a group, by group. Other texts stay as they are. */
  readonly words?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /**
   * The driver prints the line without a device: `text` is the form of all of it, and `name` a template of the address (`pci`), or of the name
   * in a class of sysfs (`block`). Only for a form that begins with more fixed bytes than the name of a process can have, 15, or with `fixed` words
   * behind them.
   */
  readonly withoutDevice?: { readonly class: string; readonly name: string; readonly fixed?: string };
  /** The line is about a PCI function, or about a port, and so about each function `below` it. Other devices have no such rows. */
  readonly pci?: 'function' | 'below';
  /** Kinds of device that the line is about, where several share an address. Default: all. */
  readonly kinds?: readonly string[];
  /** A device that is bound to another driver has no counter of this line. Default: each device has one. */
  readonly boundTo?: readonly string[];
  /** The line alone is enough: the condition holds until a line ends it. */
  readonly raises?: Raised;
  /** These conditions do not hold any more: the driver started again, or reported the end. */
  readonly ends?: readonly Pick<ConditionSpec, 'type'>[];
  /** One line is not enough: the condition judges the growth of the count of all rows that name it. */
  readonly repeats?: Growing;
  /** The line is a fault of its own, for the containers that hold the device. Groups `pid` and `process` name the process. */
  readonly fault?: Pick<Fault, 'type' | 'severity' | 'remedy'> & { readonly code?: string };
  /** Counter of these lines. Default of a row with a fault or a repeat: {@link logMetric}. */
  readonly counts?: { readonly metric: MetricSpec; readonly labels?: Labels };
}

/** A regular expression of code, whose time is bounded, or the form of a declared line. */
export interface LineForm {
  readonly source: string;
  exec(text: string): { readonly groups?: Readonly<Record<string, string | undefined>> | undefined } | null;
}

interface Raised {
  /** Declared by {@link logCondition}. */
  readonly condition: Pick<ConditionSpec, 'type'>;
  /** Template of the part of the device. */
  readonly instance?: string;
  readonly severity?: Severity;
  readonly remedy?: Remedy;
}

/** Reasons of a condition whose source is the log: a line, a line that ends it, a whole log without such a line, no such log. */
export const LOG_REASONS = ['Reported', 'Ended', 'NotReported', 'LogUnread'] as const;

type Declared<T extends string> = Pick<ConditionSpec, 'severity' | 'meaning' | 'remedy' | 'source' | 'consequences'> & { readonly type: T };

/** A condition that a line raises, and that stays until a line of the driver ends it. */
export const logCondition = <T extends string>(declared: Declared<T>) =>
  ({ ...declared, class: 'latched', reasons: LOG_REASONS, outOfBand: true }) as const satisfies ConditionSpec;

/** A condition that holds while more than `growth` lines came within `windowMs`, and for ten minutes after that. */
export const logGrowth = <T extends string>(declared: Declared<T> & { readonly growth: number; readonly windowMs: number }) => ({
  ...growthCondition(declared),
  outOfBand: true as const,
});

/** Counts the lines of each row with a fault or a repeat. A family with such rows declares it. */
export const logMetric = measured(shared.logEvents, 'lines of drivers in the kernel log');

/** The counter of a row; undefined when its lines are not counted. */
export const counterOf = ({ name, counts, repeats, fault }: LogRow): LogRow['counts'] =>
  counts ?? (repeats === undefined && fault === undefined ? undefined : { metric: logMetric, labels: { event: name } });

/** A record that a row explains. */
export interface LogLine {
  readonly row: LogRow;
  /** PCI address of the device, or its id where it has none. */
  readonly address: string;
  /** Texts of the named groups, with the words of the row. */
  readonly groups: Readonly<Record<string, string>>;
}

/** Finds the device of a record, or of a name in a class of sysfs. */
export interface LogPlaces {
  /** `named`: the name that the line begins with. Undefined when the record has no device, or it is another one. */
  ofRecord(record: Pick<KmsgRecord, 'subsystem' | 'device'>, named: string): string | undefined;
  ofName(className: string, name: string): string | undefined;
}

/** Only what the record says itself: PCI functions by address, others by name. */
export const recordedPlaces: LogPlaces = {
  ofRecord: ({ subsystem, device = '' }, named) => (device === `+${subsystem}:${named}` || /^[bcn]\d/.test(device) ? named : undefined),
  ofName: (_, name) => name,
};

/** Devices by the files of the kernel. A device that is gone is known by the name that the family had for it: `known`. */
export function sysfsPlaces(sys: Tree, known: ReadonlyMap<string, string>): LogPlaces {
  const at = (path: string | undefined, name: string): string | undefined =>
    path === undefined || name.includes('..') ? undefined : (pciAddressOf(sys, path) ?? known.get(name));
  return {
    ofRecord({ subsystem, device = '' }, named) {
      if (device === `+pci:${named}` && subsystem === 'pci') return named;
      if (device === `+${subsystem}:${named}`) return at(`bus/${subsystem}/devices/${named}`, named);
      const [, kind = '', number = ''] = /^([bcn])(\d{1,8}(?::\d{1,8})?)$/.exec(device) ?? [];
      if (kind === '') return undefined;
      if (kind === 'n') return sys.text(`class/net/${named}/ifindex`) === number ? at(`class/net/${named}`, named) : undefined;
      const path = `dev/${kind === 'b' ? 'block' : 'char'}/${number}`;
      const real = sys.realpath(path);
      return real === undefined ? known.get(named) : basename(real) === named ? at(path, named) : undefined;
    },
    ofName: (className, name) => at(`class/${className}/${name}`, name),
  };
}

/** `<driver> <device>`, then what the macros of subsystems add (netdev_printk): the name of a part, and its state. */
const BEGIN = /^(\S{1,64}) (\S{1,128}?)(?: (?:\(unnamed net_device\)|\S{1,64}))??(?: \([a-z ]{1,32}\))?: /;

const beginOf = onceInTurn((text): readonly string[] => BEGIN.exec(text) ?? []);

/** The rows of any driver, under the name that no driver has, and those of each driver that a row names: a flood is of other drivers. */
const rowsByDriver = new WeakMap<readonly LogRow[], ReadonlyMap<string, readonly LogRow[]>>();

function rowsFor(rows: readonly LogRow[], driver: string): readonly LogRow[] {
  let known = rowsByDriver.get(rows);
  if (known === undefined) {
    const names = ['', ...rows.flatMap(({ drivers }) => drivers)];
    const fits = ({ withoutDevice, drivers }: LogRow, name: string): boolean =>
      withoutDevice !== undefined || drivers.length === 0 || drivers.includes(name);
    known = new Map(names.map((name) => [name, rows.filter((row) => fits(row, name))]));
    rowsByDriver.set(rows, known);
  }
  return known.get(driver) ?? known.get('') ?? [];
}

/** Parses one record; undefined for one that means nothing to the rows. Pure but for `places`. */
export function logLineOf(
  rows: readonly LogRow[],
  record: Pick<KmsgRecord, 'origin' | 'text' | 'subsystem' | 'device'>,
  places: LogPlaces = recordedPlaces,
): LogLine | undefined {
  const { origin, text, device } = record;
  if (origin !== 'kernel') return undefined;
  const [begin = '', driver = '', named = ''] = device === undefined ? [] : beginOf(text);
  for (const row of rowsFor(rows, driver)) {
    const match = row.text.exec(row.withoutDevice === undefined ? text.slice(begin.length) : text);
    if (match === null) continue;
    const groups = wordsOf(row, match.groups ?? {});
    const address = row.withoutDevice === undefined ? places.ofRecord(record, named) : placeIn(row.withoutDevice, match.groups, places);
    return address === undefined ? undefined : { row, address, groups };
  }
  return undefined;
}

function placeIn(
  { class: className, name: template }: NonNullable<LogRow['withoutDevice']>,
  groups: Readonly<Record<string, string | undefined>> | undefined,
  places: LogPlaces,
): string | undefined {
  const name = fill(template, groups ?? {});
  return className === 'pci' || name === undefined ? name : places.ofName(className, name);
}

const wordsOf = ({ words = {} }: LogRow, groups: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(groups).map(([name, text = '']) => [
      name,
      Object.hasOwn(words[name] ?? {}, text) ? (words[name]?.[text] ?? text) : text,
    ]),
  );

/** What a line means, in words. */
export const meaningOf = ({ row, groups }: LogLine, template: string = row.means): string => fill(template, groups) ?? template;

/** What a capture with replaced names keeps of a record: a record that the rows know, and the names of programs in it. */
export const knownLine =
  (rows: readonly LogRow[]) =>
  (record: Pick<KmsgRecord, 'origin' | 'text' | 'subsystem' | 'device'>): readonly string[] | undefined => {
    const line = logLineOf(rows, record);
    return line === undefined ? undefined : line.groups.process === undefined ? [] : [line.groups.process];
  };
