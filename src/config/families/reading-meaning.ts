import { shared } from '../../model/shared-metrics.ts';
import { sharedMetric } from '../../probes/declared/conditions.ts';
import type { Declaration, DeclaredReading } from '../../probes/declared/declaration.ts';
import { hwmonMetrics } from '../../probes/kit/hwmon.ts';
import { pcieMetrics } from '../../probes/kit/pcie/pcie.ts';
import { nearestHint } from '../nearest.ts';
import type { SchemaProblem } from '../schema-check.ts';
import type { Path } from '../text-positions.ts';

/** Labels that the exposition or Prometheus adds. */
const TAKEN_LABELS: ReadonlySet<string> = new Set([
  'device',
  'namespace',
  'pod',
  'container',
  'resource',
  'instance',
  'job',
  'le',
  'quantile',
]);
/** Suffixes of other units than the base units, and the base unit. */
const OTHER_UNITS: Readonly<Record<string, string>> = {
  percent: 'ratio',
  milliseconds: 'seconds',
  microseconds: 'seconds',
  nanoseconds: 'seconds',
  ms: 'seconds',
  us: 'seconds',
  ns: 'seconds',
  minutes: 'seconds',
  hours: 'seconds',
  mhz: 'hertz',
  ghz: 'hertz',
  khz: 'hertz',
  kb: 'bytes',
  mb: 'bytes',
  gb: 'bytes',
  kib: 'bytes',
  mib: 'bytes',
  gib: 'bytes',
  kilobytes: 'bytes',
  megabytes: 'bytes',
  gigabytes: 'bytes',
  bits: 'bytes',
  milliwatts: 'watts',
  mw: 'watts',
  microwatts: 'watts',
  kilowatts: 'watts',
  millivolts: 'volts',
  mv: 'volts',
  milliamperes: 'amperes',
  millijoules: 'joules',
  microjoules: 'joules',
  millicelsius: 'celsius',
  fahrenheit: 'celsius',
  kelvin: 'celsius',
};

/** What is wrong with the metrics of a declaration. */
export function readingProblems(declaration: Declaration, taken: ReadonlySet<string>): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  const { readings = [], activity } = declaration;
  const say = (path: Path, message: string): void => void problems.push({ path, atKey: false, message });
  readings.forEach((reading, n) => {
    const at = ['readings', n];
    for (const label of Object.keys(reading.labels ?? {}))
      if (TAKEN_LABELS.has(label)) say([...at, 'labels', label], `the label "${label}" belongs to the agent or to Prometheus`);
    if (sharedMetric(reading.metric) === undefined) checkOwn(declaration, reading, n, taken, say);
    else checkShared(declaration, reading, n, say);
  });
  const counters = readings
    .filter((reading) => (sharedMetric(reading.metric)?.type ?? reading.type) === 'counter')
    .map(({ metric }) => metric);
  activity?.traffic?.metrics.forEach((metric, n) => {
    if (!counters.includes(metric))
      say(['activity', 'traffic', 'metrics', n], `there is no declared counter ${metric}${nearestHint(metric, counters)}`);
  });
  if (activity?.utilization !== undefined && !readings.some(({ metric }) => metric === shared.utilization.name))
    say(['activity', 'utilization'], `there is no reading of ${shared.utilization.name}`);
  return problems;
}

type Say = (path: Path, message: string) => void;

function checkShared(
  { pcie, hwmon }: Declaration,
  { metric, type, help, container, labels = {} }: DeclaredReading,
  n: number,
  say: Say,
): void {
  for (const [key, value] of Object.entries({ type, help, container }))
    if (value !== undefined) say(['readings', n, key], `${metric} is a shared metric, which has its own ${key}`);
  for (const label of sharedMetric(metric)?.labels ?? [])
    if (!Object.hasOwn(labels, label)) say(['readings', n, 'labels'], `${metric} needs the label "${label}"`);
  const traits = [
    ['pcie', pcie, pcieMetrics],
    ['hwmon', hwmon, Object.values(hwmonMetrics)],
  ] as const;
  for (const [trait, isOn, metrics] of traits)
    if (isOn === true && metrics.some(({ name }) => name === metric))
      say(['readings', n, 'metric'], `"${trait}: true" already reads ${metric}`);
}

function checkOwn({ family, readings = [] }: Declaration, reading: DeclaredReading, n: number, taken: ReadonlySet<string>, say: Say): void {
  const { metric, type, help, labels = {} } = reading;
  const at = ['readings', n, 'metric'];
  if (!metric.startsWith(`device_${family}_`)) {
    const names = Object.values(shared).map(({ name }) => name);
    say(at, `a metric is a shared one or begins with device_${family}_${nearestHint(metric, names)}`);
    return;
  }
  if (taken.has(metric)) say(at, `the agent itself has a metric ${metric}`);
  const first = readings.find((other) => other.metric === metric) as DeclaredReading;
  if (first === reading) {
    if (help === undefined) say(at, `${metric} needs "help", one sentence that describes the value`);
  } else {
    if (type !== undefined && type !== (first.type ?? 'gauge')) say(['readings', n, 'type'], `${metric} has two types`);
    const labelsOf = (one: DeclaredReading): string =>
      Object.keys(one.labels ?? {})
        .sort()
        .join(', ');
    if (labelsOf(first) !== labelsOf(reading))
      say(at, `${metric} has two sets of labels: ${labelsOf(first)}, and ${Object.keys(labels).sort().join(', ')}`);
  }
  const isCounter = (first.type ?? 'gauge') === 'counter';
  if (metric.endsWith('_total') !== isCounter)
    say(at, isCounter ? 'the name of a counter ends in _total' : 'only the name of a counter ends in _total');
  const suffix =
    metric
      .replace(/_total$/, '')
      .split('_')
      .at(-1) ?? '';
  const unit = Object.hasOwn(OTHER_UNITS, suffix) ? OTHER_UNITS[suffix] : undefined;
  if (unit !== undefined) say(at, `metrics have base units: end the name in _${unit}${isCounter ? '_total' : ''} and give "scale"`);
}
