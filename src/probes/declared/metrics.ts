import type { MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import { hwmonMetrics } from '../kit/hwmon.ts';
import { pcieMetrics } from '../kit/pcie/pcie.ts';
import type { Declaration, DeclaredReading, DeclaredSource } from './declaration.ts';

const sharedByName: ReadonlyMap<string, Omit<MetricSpec, 'source'>> = new Map(Object.values(shared).map((spec) => [spec.name, spec]));

/** The shared metric of a name; undefined for a metric of the family itself. */
export const sharedMetric = (name: string): Omit<MetricSpec, 'source'> | undefined => sharedByName.get(name);

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
  const ofTraits = [...(declaration.hwmon === true ? Object.values(hwmonMetrics) : []), ...(declaration.pcie === true ? pcieMetrics : [])];
  return [...own, ...ofTraits.filter(({ name }) => !taken.has(name))];
}

/** Tells where a value comes from: the file, or the cell of a program's output. */
export function sourceText(source: DeclaredSource, { commands = {} }: Declaration): string {
  const { file, entry, link, command, pointer, column, line, field } = source;
  const part = [line === undefined ? '' : `, line "${line}"`, field === undefined ? '' : `, field ${field}`].join('');
  if (command === undefined) return `${file ?? entry ?? link ?? ''}${part}`;
  const { path = command, args = [] } = commands[command] ?? {};
  return `${[path, ...args].join(' ')}: ${pointer ?? column ?? ''}${part}`;
}
