import type { ProblemSpec } from '../../model/collection.ts';
import type { BusHardware } from '../../model/declaration.ts';
import { defined } from '../../model/defined.ts';
import { type Millis, parseDuration } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';
import type { MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import { hwmonCondition, hwmonMetrics } from '../kit/hwmon.ts';
import { counterOf, type LogRow, logCondition, logGrowth, logMetric } from '../kit/log-row.ts';
import { busConditions, startFailed, startRows } from '../kit/pcie/bus-conditions.ts';
import { pcieConditions } from '../kit/pcie/health.ts';
import { pcieLogRows } from '../kit/pcie/log.ts';
import { pcieMetrics } from '../kit/pcie/pcie.ts';
import type { Declaration, DeclaredCondition, DeclaredReading, DeclaredSource } from './declaration.ts';
import { hardwareOf } from './discover.ts';
import { NORMAL, reasonOf, UNREADABLE } from './judges.ts';
import { lineForm } from './line-form.ts';

const sharedByName: ReadonlyMap<string, Omit<MetricSpec, 'source'>> = new Map(Object.values(shared).map((spec) => [spec.name, spec]));

/** The shared metric of a name; undefined for a metric of the family itself. */
export const sharedMetric = (name: string): Omit<MetricSpec, 'source'> | undefined => sharedByName.get(name);

/** Sources whose values are counts. */
export const countersOf = ({ readings = [], conditions = [] }: Declaration): ReadonlySet<DeclaredSource> =>
  new Set<DeclaredSource>([
    ...readings.filter(({ metric, type }) => (sharedMetric(metric)?.type ?? type) === 'counter'),
    ...conditions.filter(({ growth }) => growth !== undefined),
  ]);

/** The metrics of a declaration: one for each name, with the labels and sources of all its readings. */
export function metricsOf(declaration: Declaration): readonly MetricSpec[] {
  const byName = new Map<string, DeclaredReading[]>();
  for (const reading of declaration.readings ?? []) byName.set(reading.metric, [...(byName.get(reading.metric) ?? []), reading]);
  const own = [...byName].map(([name, readings]): MetricSpec => {
    const labels = [...new Set(readings.flatMap(({ labels: given = {} }) => Object.keys(given)))];
    const source = [...new Set(readings.map((reading) => sourceText(reading, declaration)))].join('; ');
    const known = sharedMetric(name);
    if (known !== undefined) return measured(known, source, [...new Set([...known.labels, ...labels])]);
    const {
      type = 'gauge',
      help = '',
      container,
      wiped,
    } = readings.find((reading) => reading.help !== undefined) ?? (readings[0] as DeclaredReading);
    return { name, type, help, labels, source, ...(container === true ? { container } : {}), ...(wiped === true ? { wiped } : {}) };
  });
  const taken = new Set(own.map(({ name }) => name));
  const ofTraits = [
    ...(allRowsOf(declaration).some((row) => counterOf(row) !== undefined) ? [logMetric] : []),
    ...(declaration.hwmon === true ? Object.values(hwmonMetrics) : []),
    ...(declaration.pcie === true ? pcieMetrics : []),
  ];
  return [...own, ...ofTraits.filter(({ name }) => !taken.has(name))];
}

/** Says where a value comes from: the file, or the cell of a program's output. */
function sourceText(source: DeclaredSource, { commands = {} }: Declaration): string {
  const { file, entry, link, command, pointer, column, line, field } = source;
  const part = [line === undefined ? '' : `, line "${line}"`, field === undefined ? '' : `, field ${field}`].join('');
  if (command === undefined) return `${file ?? entry ?? link ?? ''}${part}`;
  const { path = command, args = [] } = commands[command] ?? {};
  return `${[path, ...args].join(' ')}: ${pointer ?? column ?? ''}${part}`;
}

/** The conditions of a declaration. */
export function conditionsOf(declaration: Declaration): readonly ConditionSpec[] {
  const own = (declaration.conditions ?? []).map((condition): ConditionSpec => {
    const { type, severity, meaning, remedy, source, growth, level, log } = condition;
    if (log !== undefined) return logged(condition, log);
    return {
      type,
      class: classOf(condition),
      severity,
      reasons: (growth ?? level) === undefined ? [...new Set([reasonOf(condition), NORMAL, UNREADABLE])] : [reasonOf(condition)],
      meaning,
      remedy,
      source,
      ...time('forMs', condition.for),
      ...time('recoveryMs', condition.recovery),
      ...defined({ threshold: growth && { growth: growth.above, windowMs: parseDuration(growth.within) ?? 0 } }),
    };
  });
  const hardware = hardwareOf(declaration);
  return [
    ...own,
    ...(hardware.length > 0 ? [...busConditions, startFailed] : []).filter(({ type }) => !own.some((one) => one.type === type)),
    ...(declaration.hwmon === true ? [hwmonCondition] : []),
    ...(declaration.pcie === true ? pcieConditions : []),
  ];
}

function logged(
  { type, severity, meaning, remedy, source }: DeclaredCondition,
  { above, within }: NonNullable<DeclaredCondition['log']>,
): ConditionSpec {
  const declared = { type, severity, meaning, remedy, source };
  return within === undefined
    ? logCondition(declared)
    : logGrowth({ ...declared, growth: above ?? 0, windowMs: parseDuration(within) ?? 0 });
}

/** The rows of the kernel log of a declaration. */
export function logRowsOf({ lines = [], conditions = [] }: Declaration): readonly LogRow[] {
  const growing = new Set(conditions.flatMap(({ type, log }) => (log?.within === undefined ? [] : [type])));
  return lines.map((line): LogRow => {
    const { event, drivers, text, device, means, source, kinds, condition, instance, ends, fault } = line;
    return {
      ...{ name: event, drivers, text: lineForm(text), means, source },
      ...(device !== undefined && { withoutDevice: device }),
      ...(kinds !== undefined && { kinds }),
      ...(ends !== undefined && { ends: ends.map((type) => ({ type })) }),
      ...(fault !== undefined && { fault }),
      ...(condition !== undefined && growing.has(condition) && { repeats: { type: condition, reasons: ['CounterGrows'] as const } }),
      ...(condition !== undefined &&
        !growing.has(condition) && { raises: { condition: { type: condition }, ...(instance !== undefined && { instance }) } }),
    };
  });
}

/** With those of its traits. */
export const allRowsOf = (declaration: Declaration): readonly LogRow[] => [
  ...logRowsOf(declaration),
  ...startRowsOf(hardwareOf(declaration)),
  ...(declaration.pcie === true ? pcieLogRows : []),
];

/** Where the drivers of some hardware are not known, a start of any driver counts. */
function startRowsOf(hardware: readonly BusHardware[]): readonly LogRow[] {
  if (hardware.length === 0) return [];
  const isKnown = hardware.every(({ drivers }) => drivers !== undefined);
  return startRows(isKnown ? [...new Set(hardware.flatMap(({ drivers = [] }) => drivers))] : []);
}

const time = <K extends string>(name: K, text: string | undefined): Partial<Record<K, Millis>> => {
  const value = text === undefined ? undefined : parseDuration(text);
  return value === undefined ? {} : ({ [name]: value } as Record<K, Millis>);
};

function classOf({ growth, latched, progress }: DeclaredCondition): ConditionSpec['class'] {
  if (growth !== undefined) return 'rate';
  if (latched === true) return 'latched';
  return progress === true ? 'in-progress' : 'self-clearing';
}

/** Problems of every declared family. */
export const problems = [
  {
    code: 'place-unreadable',
    meaning: 'A directory in which the family searches for its devices exists but cannot be listed.',
    remedy: "Mount the host's /sys read-only into the agent, and let the agent list the directory.",
  },
  {
    code: 'id-unreadable',
    meaning: 'A device was found, but its id cannot be read, so the agent cannot report it.',
    remedy: 'Compare the source of the id in the declaration with the file on this node: device-agent family check shows both.',
  },
  {
    code: 'duplicate-id',
    meaning: 'Two devices have the same id. The agent reports the first one.',
    remedy: 'Declare an id that differs for each device, such as a PCI address or a serial number.',
  },
  {
    code: 'parent-circle',
    meaning: 'The source of the parents says that devices are parts of each other. The agent reports them as parts of nothing.',
    remedy: 'Correct the source of the parent in the declaration.',
  },
  {
    code: 'too-many-devices',
    meaning:
      'More devices match the declaration than a family may have, or their ids and facts change often. The agent reports the first ones.',
    remedy: 'Make the place in the declaration narrower. Take ids and facts from files that do not change.',
  },
  {
    code: 'device-unreadable',
    meaning: 'A device was found, but none of its declared values can be read.',
    remedy: 'Let the agent read the files that the declaration names. If they have other names on this node, correct the declaration.',
  },
  {
    code: 'device-vanished',
    meaning: 'A device was found but disappeared before it was read, as during a reload of its driver or a hot removal.',
    remedy: 'If the device does not return by itself, search the kernel log for the driver.',
  },
  {
    code: 'value-unreadable',
    meaning: 'A declared file exists but cannot be read. Its reading is absent and its conditions are unknown.',
    remedy: 'Read the file manually. If only root may read it, run the agent as root or remove the file from the declaration.',
  },
  {
    code: 'value-invalid',
    meaning: 'A declared file or cell holds a text that the declaration does not describe. The agent does not use the text.',
    remedy: 'Read the file manually and correct the declaration: its map, its unit or its number format.',
  },
  {
    code: 'too-many-values',
    meaning:
      'A declared source has more values on one device than it may have, or its labels change so often that the family has used up its series of a day. The agent reports the first ones.',
    remedy: 'Make the glob in the declaration narrower. Take labels from names that do not change.',
  },
  {
    code: 'command-failed',
    meaning: 'A declared program did not run, failed, or took too long. Its values are unknown.',
    remedy: 'Run the program manually with the arguments of the declaration.',
  },
  {
    code: 'command-output-invalid',
    meaning: 'The output of a declared program does not have the declared form.',
    remedy: 'Run the program manually and compare its output with the format, the rows and the columns of the declaration.',
  },
] as const satisfies readonly ProblemSpec[];
