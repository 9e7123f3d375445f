import type { Remedy, Severity } from '../../model/health.ts';
import type { MetricType } from '../../model/metric.ts';

/** A device family as data: the checked content of one YAML file. Plain data, so it crosses a thread boundary. `schema.ts` has the limits. */
export interface Declaration {
  readonly family: string;
  readonly summary: string;
  /** What the declaration was checked against. */
  readonly proven?: string;
  /** False: the family is read only when the configuration enables it. Default true. */
  readonly enabled?: boolean;
  readonly commands?: Readonly<Record<string, DeclaredCommand>>;
  readonly devices: readonly DeclaredDevices[];
  /** Adds the metrics and conditions of the PCIe link to each device that has a PCI address. */
  readonly pcie?: boolean;
  /** Adds the sensors of the hardware monitors (hwmon) below each device, their limits, and the condition of too high temperatures. */
  readonly hwmon?: boolean;
  readonly readings?: readonly DeclaredReading[];
  readonly conditions?: readonly DeclaredCondition[];
  readonly resources?: readonly DeclaredResource[];
  readonly activity?: DeclaredActivity;
}

/** A program whose output has rows. */
export interface DeclaredCommand {
  /** Absolute. */
  readonly path: string;
  readonly args?: readonly string[];
  readonly format: 'json' | 'csv';
  /** JSON pointer of the list of rows. Default: the whole document. */
  readonly rows?: string;
  /** Names of the columns of a CSV without a header line. */
  readonly columns?: readonly string[];
  readonly separator?: string;
  /** The cell that names the device of a row: a JSON pointer, or a column. */
  readonly key?: string;
  /** Time between two runs, such as `1m`. Default: each refresh. */
  readonly every?: string;
  /** Default 3 s. */
  readonly timeout?: string;
  /** The program may be absent without a problem. */
  readonly optional?: boolean;
  /** Set only by `family check --root`: a file with the output of an earlier run. The program does not run. */
  readonly captured?: string;
}

/** One kind of device and where it is found. */
export interface DeclaredDevices {
  readonly kind: string;
  readonly find: DeclaredPlace;
  /** Text that the key of a command's row equals for a device, by name of the command. */
  readonly rows?: Readonly<Record<string, string>>;
  readonly id: Fact;
  /** What identifies the hardware, whatever its id is. Default: the id. */
  readonly identity?: Fact;
  readonly aliases?: readonly Fact[];
  readonly parent?: Fact;
  readonly facts?: Readonly<Partial<Record<FactName, Fact>>>;
  /** Device nodes that a container needs, as templates of absolute paths. */
  readonly nodes?: readonly string[];
}

/** Exactly one member. */
export interface DeclaredPlace {
  /** Glob of directories, from `/sys`. */
  readonly sysfs?: string;
  readonly pci?: DeclaredPci;
  /** Each row of the command is a device. */
  readonly command?: string;
}

/** PCI functions that have all given properties. */
export interface DeclaredPci {
  readonly vendor?: string;
  readonly devices?: readonly string[];
  /** Prefix of the class code, without `0x`. */
  readonly class?: string;
  readonly drivers?: readonly string[];
  readonly functions?: 'physical' | 'virtual';
}

/** A template, or a source. */
export type Fact = string | DeclaredSource;

export const TEXT_FACTS = ['model', 'vendor', 'uuid', 'serial', 'driver', 'firmware', 'index'] as const;
export const NUMBER_FACTS = ['numaNode', 'minor', 'vfIndex'] as const;
export const ADDRESS_FACTS = ['pciAddress', 'physicalFunction'] as const;
export const FACT_NAMES = [...TEXT_FACTS, ...NUMBER_FACTS, ...ADDRESS_FACTS] as const;
export type FactName = (typeof FACT_NAMES)[number];

/** Where a value comes from, and how its text becomes a value. */
export interface DeclaredSource {
  /** Glob of files below the device's directory, or below `/sys/` or `/proc/driver/`. */
  readonly file?: string;
  /** A symbolic link below the device's directory; the value is the last part of its target. */
  readonly link?: string;
  /** Glob of names below the device's directory; the value is the text of its first wildcard. */
  readonly entry?: string;
  /** A cell of the device's row: a command with a pointer or a column. A pointer to a list gives each of its cells. */
  readonly command?: string;
  readonly pointer?: string;
  readonly column?: string;
  /** The first line that begins with this text; the rest of the line is the value. */
  readonly line?: string;
  /** Each line is a value: its last word. The words before it are `{key}`. */
  readonly each?: 'line';
  /** Number of the field, from 1. */
  readonly field?: number;
  /** Separator of the fields. Default: spaces. */
  readonly separator?: string;
  /** Text after the number; a value without it is not used. */
  readonly unit?: string;
  readonly hex?: boolean;
  readonly scale?: number;
  readonly offset?: number;
  readonly map?: Readonly<Record<string, string | number>>;
  /** Texts that mean "no value". */
  readonly absent?: readonly (string | number)[];
  /** With `each`: keys that are left out. */
  readonly without?: readonly string[];
  /** For facts: a template of the value, `{value}`. */
  readonly as?: string;
}

export interface DeclaredReading extends DeclaredSource {
  /** A shared metric, or `device_<family>_…`. */
  readonly metric: string;
  /** Only for metrics of the family itself. */
  readonly type?: MetricType;
  readonly help?: string;
  readonly container?: boolean;
  readonly wiped?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  /** Kinds of device that have it. Default: all. */
  readonly kinds?: readonly string[];
  /** Largest value of the counter, for its conditions. */
  readonly ceiling?: number;
}

export interface DeclaredCondition extends DeclaredSource {
  readonly type: string;
  readonly severity: Severity;
  readonly meaning: string;
  readonly remedy: Remedy;
  /** Reason while it holds. Default: the type. */
  readonly reason?: string;
  /** Source of the rule and its numbers. */
  readonly source: string;
  /** Uses the values of a declared reading, with its labels as instance. */
  readonly reading?: string;
  readonly kinds?: readonly string[];
  readonly instance?: string;
  /** Exactly one of the following. */
  readonly above?: number;
  readonly below?: number;
  readonly equals?: readonly (string | number)[];
  readonly bits?: string | number;
  readonly growth?: { readonly above: number; readonly within: string };
  readonly ceiling?: number;
  readonly latched?: boolean;
  /** The condition is normal until the time in `for` is over. */
  readonly progress?: boolean;
  readonly for?: string;
  readonly recovery?: string;
}

/** Which ids of a resource belong to which devices. */
export interface DeclaredResource {
  /** Name with `*` for any characters; for claims, the name of the driver. */
  readonly resource: string;
  readonly kinds?: readonly string[];
  /** Templates of ids. */
  readonly ids?: readonly string[];
  /** A template with `{id}`: the device has this alias. */
  readonly alias?: string;
}

export interface DeclaredActivity {
  readonly utilization?: { readonly above: number; readonly engines?: readonly string[] };
  readonly traffic?: { readonly metrics: readonly string[]; readonly above: number };
  readonly isForHoldersOnly: boolean;
}

/** The judges of a condition. */
export const JUDGES = ['above', 'below', 'equals', 'bits', 'growth'] as const;
