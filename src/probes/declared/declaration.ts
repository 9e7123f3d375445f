import { defined } from '../../model/defined.ts';
import type { Remedy, Severity } from '../../model/health.ts';
import type { MetricType } from '../../model/metric.ts';

/** The form of a declaration: one JSON Schema, of which its types are made. */

declare const TYPE: unique symbol;
/** A JSON Schema, draft-07, for values of the type `T`. */
type Schema<T = unknown> = Readonly<Record<string, unknown>> & { readonly [TYPE]?: T };
type Of<S> = S extends Schema<infer T> ? T : never;
type ObjectOf<P, R> = { readonly [K in keyof P as K extends R ? K : never]: Of<P[K]> } & {
  readonly [K in keyof P as K extends R ? never : K]?: Of<P[K]>;
};
const schema = <T>(content: Readonly<Record<string, unknown>>): Schema<T> => content;

export const TEXT_FACTS = ['model', 'vendor', 'uuid', 'serial', 'driver', 'firmware', 'index'] as const;
export const NUMBER_FACTS = ['numaNode', 'minor', 'vfIndex'] as const;
export const ADDRESS_FACTS = ['pciAddress', 'physicalFunction'] as const;
export const FACT_NAMES = [...TEXT_FACTS, ...NUMBER_FACTS, ...ADDRESS_FACTS] as const;
export type FactName = (typeof FACT_NAMES)[number];
/** The judges of a condition, of which it has one. */
export const JUDGES = ['above', 'below', 'equals', 'bits', 'growth', 'still', 'level', 'log'] as const;

/** A duration such as `30s` or `1m30s`. */
const duration: Schema<string> = {
  type: 'string',
  pattern: '^(?:\\d{1,9}(?:ms|s|m|h|d)){1,5}$',
  description: 'A duration, such as 30s or 1m30s.',
};
const name: Schema<string> = { type: 'string', pattern: '^[a-z][a-z0-9-]{0,31}$', description: 'Lower case letters, digits and dashes.' };
const text = (description: string, maxLength = 300): Schema<string> => ({ type: 'string', minLength: 1, maxLength, description });
const list = <S extends Schema>(items: S, maxItems: number, description: string) =>
  schema<readonly Of<S>[]>({ type: 'array', minItems: 1, maxItems, items, description });
const oneOf = <const T>(values: readonly T[], description?: string) => schema<T>({ enum: values, ...defined({ description }) });
const camel: Schema<string> = { type: 'string', pattern: '^[A-Z][A-Za-z0-9]{0,63}$', description: 'CamelCase.' };
const hexId: Schema<string> = {
  type: 'string',
  pattern: '^0x[0-9a-f]{4}$',
  description: 'Four hexadecimal digits in lower case after 0x, in quotes.',
};
const scalar: Schema<string | number> = { type: ['string', 'number'], maxLength: 128 };
const example: Schema<string | number> = {
  type: ['string', 'number'],
  maxLength: 1_024,
  description: 'What the file holds on a sound device of the simulated node. A template with the words of the place: X1A{1}.',
};
const boolean = (description: string): Schema<boolean> => ({ type: 'boolean', description });
const number = (description: string): Schema<number> => ({ type: 'number', minimum: -1e15, maximum: 1e15, description });
const kinds = list(name, 16, 'Kinds of device that have it. Default: all.');
const object = <P extends Readonly<Record<string, Schema>>, const R extends string = never>(
  properties: P,
  required: readonly R[],
  description?: string,
) =>
  schema<ObjectOf<P, R>>({
    type: 'object',
    additionalProperties: false,
    ...(required.length === 0 ? {} : { required }),
    properties,
    ...defined({ description }),
  });

/** Where a value comes from: `file`, `link`, or `command` with `pointer` or `column`. */
const source = {
  file: text('File below the directory of the device, or below /sys/ or /proc/driver/. * matches any characters of one name, # a number.'),
  link: text('Symbolic link below the directory of the device; the value is the last name of its target.'),
  entry: text('Glob of names below the directory of the device; the value is the text of its first wildcard.'),
  command: { ...name, description: 'Name of a command; the value is a cell of the row of the device.' },
  pointer: schema<string>({
    type: 'string',
    pattern: '^(?:/[^/]{1,64}){1,8}$',
    description: 'JSON pointer in the row. A list gives each of its cells.',
  }),
  column: text('Column of the row.', 64),
  line: text('The first line that begins with this text; the value is the rest of the line.', 128),
  each: oneOf(['line'], 'Each line that ends in a word after a space is a value; the text before it is {key}.'),
  field: schema<number>({ type: 'integer', minimum: 1, maximum: 64, description: 'Number of the field in the text, from 1.' }),
  separator: schema<string>({ type: 'string', minLength: 1, maxLength: 8, description: 'Separator of the fields. Default: spaces.' }),
  unit: text('Text after the number. A value without this text is not used.', 16),
  hex: boolean('The number has base 16, also without 0x.'),
  scale: number('Factor from the number to the unit of the metric.'),
  offset: number('Added after the scale.'),
  map: schema<Readonly<Record<string, string | number>>>({
    type: 'object',
    minProperties: 1,
    maxProperties: 64,
    additionalProperties: scalar,
    description: 'Value of each text. Other texts are not used.',
  }),
  absent: list(scalar, 16, 'Texts that mean "no value".'),
  without: list(text('Key of a line.', 64), 64, 'With each: keys that are left out.'),
  example,
};
/** Where a value comes from, and how its text becomes a value. */
export type DeclaredSource = ObjectOf<typeof source, never> & {
  /** Of facts: a template of the value, `{value}`. */
  readonly as?: string;
};
/** A template, or a source. */
export type Fact = string | DeclaredSource;

const fact = (description: string): Schema<Fact> => ({
  type: ['string', 'object'],
  minLength: 1,
  maxLength: 300,
  additionalProperties: false,
  properties: { ...source, as: text('Template of the fact: core{value}.', 128) },
  description: `${description} A template such as '{name}', or a source.`,
});

/** A number, or the source of one. */
type Limit = number | DeclaredSource;
const limit = (how: string): Schema<Limit> => ({
  type: ['number', 'object'],
  minimum: -1e15,
  maximum: 1e15,
  additionalProperties: false,
  properties: source,
  description: `It holds while the value is ${how} than this number, or than the value of this source: the one with the same wildcards, if it has wildcards.`,
});

const command = object(
  {
    path: schema<string>({ type: 'string', pattern: '^/[\\w./+-]{1,255}$', description: 'Absolute path of the program.' }),
    args: schema<readonly string[]>({
      type: 'array',
      maxItems: 32,
      items: { type: 'string', maxLength: 512 },
      description: 'Its arguments. No shell reads them.',
    }),
    format: oneOf(['json', 'csv']),
    rows: schema<string>({
      type: 'string',
      pattern: '^(?:/[^/]{1,64}){0,8}$',
      description: 'JSON pointer of the list of rows. Default: the complete output.',
    }),
    columns: list(text('Column.', 64), 64, 'Columns of a CSV output without a header line.'),
    separator: schema<string>({ type: 'string', minLength: 1, maxLength: 8 }),
    key: text('Cell that names the device of a row: a JSON pointer, or a column.', 128),
    every: { ...duration, description: 'Time between two runs. Default: each refresh.' },
    timeout: { ...duration, description: 'Deadline of a run. Default: 3s. All programs together: 8s at most.' },
    optional: boolean('The program may be absent without a problem.'),
  },
  ['path', 'format'],
);
/** A program whose output has rows. `captured` is set only by `family check --root`: a file with the output of an earlier run, for a program that does not run. */
export type DeclaredCommand = Of<typeof command> & { readonly captured?: string };

const pci = object(
  {
    vendor: hexId,
    devices: list(hexId, 256, 'PCI device ids.'),
    class: schema<string>({ type: 'string', pattern: '^[0-9a-f]{2,6}$', description: 'Prefix of the class code, without 0x, in quotes.' }),
    drivers: list(text('Name of the driver.', 64), 16, 'Drivers, one of which is bound to the function.'),
    functions: oneOf(['physical', 'virtual']),
  },
  [],
  'PCI functions that have all these properties.',
);
export type DeclaredPci = Of<typeof pci>;

const bus = object(
  {
    kind: { ...name, description: 'Kind of the device that a function is.' },
    vendor: hexId,
    devices: list(hexId, 256, 'PCI device ids.'),
    class: schema<string>({ type: 'string', pattern: '^[0-9a-f]{2,6}$', description: 'Prefix of the class code, without 0x, in quotes.' }),
    drivers: list(
      text('Name of the driver.', 64),
      16,
      'Drivers that make a device of the function. Default: all but those that hand it over.',
    ),
    nodes: schema<number>({ type: 'integer', minimum: 1, maximum: 16, description: 'Number of device nodes that the driver makes.' }),
    wanted: boolean('A machine has this hardware only to use it: it is faulty without a driver.'),
  },
  ['kind', 'vendor'],
);

const places = object(
  {
    sysfs: text('Glob of directories, without /sys/: class/acme/acme#.'),
    pci: { ...pci, minProperties: 1 },
    command: { ...name, description: 'Name of a command; each of its rows is a device.' },
  },
  [],
  'Where the devices are: exactly one of sysfs, pci and command.',
);
const place = { ...places, minProperties: 1, maxProperties: 1 };
export type DeclaredPlace = Of<typeof places>;

const templates = (what: string, most: number) => list(text('Template.', 200), most, what);

const devices = object(
  {
    kind: name,
    find: place,
    rows: schema<Readonly<Record<string, string>>>({
      type: 'object',
      maxProperties: 8,
      additionalProperties: text('Template.', 200),
      description: 'For each command the text that the key of a row equals.',
    }),
    id: fact('The name of the device, stable over reboots.'),
    identity: fact('What identifies the hardware under any name, such as its serial number. Default: the id.'),
    aliases: list(fact('Another name that a plugin may use.'), 8, 'Other names that plugins use.'),
    parent: fact('The id of the device that contains it.'),
    facts: object(Object.fromEntries(FACT_NAMES.map((one) => [one, fact(`Fact ${one}.`)])) as Readonly<Record<FactName, Schema<Fact>>>, []),
    nodes: templates('Absolute paths of the device nodes that a container needs.', 16),
  },
  ['kind', 'find', 'id'],
);
/** One kind of device and where it is found. */
export type DeclaredDevices = Of<typeof devices>;

const reading = object(
  {
    metric: schema<string>({
      type: 'string',
      pattern: '^device_[a-z0-9_]{1,100}$',
      description: 'A shared metric, or device_<family>_… in base units.',
    }),
    type: oneOf<MetricType>(['gauge', 'counter']),
    help: text('One sentence that describes the value.'),
    container: boolean('The container that holds the device gets the metric too.'),
    wiped: boolean('A reset or a reboot can wipe it: an incident keeps its last value.'),
    show: text('Its name on the page and in the terminal, which show it first. A counter is shown by its growth.', 24),
    labels: schema<Readonly<Record<string, string>>>({
      type: 'object',
      maxProperties: 8,
      propertyNames: { pattern: '^[a-z][a-z0-9_]{0,31}$' },
      additionalProperties: { type: 'string', minLength: 1, maxLength: 128 },
      description: 'Fixed texts, or {1}, {2} for the wildcards of the file, {key} for the key of a line.',
    }),
    kinds,
    ...source,
  },
  ['metric'],
);
export type DeclaredReading = Of<typeof reading>;

const condition = object(
  {
    type: camel,
    severity: oneOf<Severity>(['fatal', 'degraded', 'info']),
    meaning: text('One or two sentences for the reference page.', 600),
    remedy: oneOf<Remedy>([
      'none',
      'reset',
      'reboot',
      'power-cycle',
      'replace',
      'check-cable',
      'enable-port',
      'check-subnet-manager',
      'check-cooling',
      'check-power',
      'restart-workload',
      'reload-driver',
      'reseat',
      'inspect',
    ]),
    reason: { ...camel, description: 'Reason while it holds. Default: the type.' },
    source: text('Where the rule and its numbers come from.'),
    reading: text('Metric of a declared reading whose values are judged.', 120),
    kinds,
    instance: text('Template of the part of the device. Default: the wildcards of the file.', 128),
    message: text(
      'What was judged, in words: {value}, {limit}, the wildcards of the file, and {key}. Default: the file and its text.',
      200,
    ),
    above: limit('greater'),
    below: limit('smaller'),
    equals: list(scalar, 32, 'It holds while the value is one of these.'),
    bits: schema<string | number>({
      type: ['string', 'integer'],
      minimum: 1,
      maximum: 9_007_199_254_740_991,
      pattern: '^0x[0-9a-f]{1,16}$',
      description: 'It holds while one of these bits is set.',
    }),
    growth: object(
      { above: schema<number>({ type: 'number', minimum: 0, maximum: 1e15 }), within: duration },
      ['above', 'within'],
      'It holds while the counter grows by more than this.',
    ),
    log: object(
      { above: schema<number>({ type: 'integer', minimum: 0, maximum: 1e9 }), within: duration },
      [],
      'Lines of the kernel log raise it: one line alone ({}), or more than this number within the time.',
    ),
    still: { ...duration, description: 'It holds while the value has not changed for this time and the device is awake: a heartbeat.' },
    level: oneOf(['highest'], 'It holds while the value is smaller than the highest one since the machine booted.'),
    ceiling: schema<number>({ type: 'number', minimum: 1, maximum: 9_007_199_254_740_991, description: 'Largest value of the counter.' }),
    latched: boolean('It usually stays until an operator acts.'),
    progress: boolean('It is normal until the time in for is over.'),
    for: { ...duration, description: 'Time for which it must hold before it counts.' },
    recovery: { ...duration, description: 'Time without the condition before it is withdrawn.' },
    ...source,
  },
  ['type', 'severity', 'meaning', 'remedy', 'source'],
);
const line = object(
  {
    event: { ...name, description: 'Name of the line: the label event of its counter.' },
    drivers: list(text('Name of a driver, a bus or a class.', 64), 8, 'The word that the line begins with is one of these.'),
    text: text('Text behind "<driver> <device>: ", from its begin. {word} is one word, # a number, * any characters.', 200),
    device: object(
      { class: text('Class in /sys/class, or pci.', 32), name: text('Template of the name or address: nd{device}.', 64) },
      ['class', 'name'],
      'For a line that the driver prints without a device: text is all of it, and begins with 16 fixed characters at least.',
    ),
    means: text('What the line means. A template with the words of the line.'),
    source: text('File of the kernel or text of the vendor that has the line.'),
    kinds,
    condition: { ...camel, description: 'Condition with "log" that the line raises or counts for.' },
    instance: text('Template of the part of the device.', 64),
    ends: list(camel, 8, 'Conditions with "log" that do not hold any more.'),
    fault: object(
      {
        type: camel,
        severity: oneOf<Severity>(['fatal', 'degraded', 'info']),
        remedy: oneOf<Remedy>(['none', 'reset', 'reboot', 'replace', 'restart-workload', 'reload-driver', 'inspect']),
      },
      ['type', 'severity', 'remedy'],
      'The line is a fault of its own, for the containers that hold the device. {pid} and {process} name the process.',
    ),
  },
  ['event', 'drivers', 'text', 'means', 'source'],
);

/** It has exactly one of {@link JUDGES}. */
export type DeclaredCondition = Of<typeof condition>;

const resource = object(
  {
    resource: text('Name of the resource, or of the DRA driver. * matches any characters.', 200),
    kinds,
    ids: templates('Ids of the devices in this resource.', 8),
    alias: text('Alias that the device of an id has: core{id}.', 128),
  },
  ['resource'],
);
/** Which ids of a resource belong to which devices. */
export type DeclaredResource = Of<typeof resource>;

const activity = object(
  {
    utilization: object(
      { above: schema<number>({ type: 'number', minimum: 0, maximum: 1 }), engines: list(text('Engine.', 64), 32, 'Engines that count.') },
      ['above'],
    ),
    traffic: object(
      {
        above: schema<number>({ type: 'number', minimum: 0, maximum: 1e15 }),
        metrics: list(text('Metric.', 120), 16, 'Counters of bytes.'),
      },
      ['above', 'metrics'],
    ),
    isForHoldersOnly: boolean('Only processes of the holder use the device.'),
  },
  ['isForHoldersOnly'],
  'What shows that a device works.',
);

const declaration = object(
  {
    family: schema<string>({
      type: 'string',
      pattern: '^[a-z][a-z0-9]{1,19}$',
      description: 'Name of the family: lower case letters and digits.',
    }),
    summary: text('The hardware in one line.', 120),
    proven: text('What the declaration was checked against.', 600),
    enabled: boolean('False: the family is read only when the configuration enables it. Default true.'),
    commands: schema<Readonly<Record<string, DeclaredCommand>>>({
      type: 'object',
      maxProperties: 8,
      propertyNames: { pattern: name.pattern },
      additionalProperties: command,
      description: 'Programs whose output has rows, by name.',
    }),
    devices: list(devices, 16, 'The kinds of device and where they are.'),
    bus: list(bus, 16, 'Hardware of the family on the PCI bus: a device without its driver is listed, and its state is judged.'),
    pcie: boolean('Adds the metrics and conditions of the PCIe link to each device that has a PCI address.'),
    hwmon: boolean('Adds the sensors of the hardware monitors below each device, their limits, and the condition OverTemperature.'),
    inherit: boolean('A device with a parent has the fatal conditions of the parent, too.'),
    readings: list(reading, 64, 'What is measured.'),
    conditions: list(condition, 32, 'What can be wrong with a device.'),
    lines: list(line, 64, 'Lines of its drivers in the kernel log.'),
    resources: list(resource, 32, 'Which ids of a resource belong to which device.'),
    activity,
  },
  ['family', 'summary', 'devices'],
);
/** A device family as data: the checked content of one YAML file. Plain data, so it crosses a thread boundary. */
export type Declaration = Of<typeof declaration>;

/** `device-agent family schema` prints it. */
export const declarationSchema: Readonly<Record<string, unknown>> = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Device family of device-agent',
  ...declaration,
};
