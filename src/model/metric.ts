export type MetricType = 'gauge' | 'counter';

/** Labels of one series, without those that the exposition adds (`device`, `namespace`, …). */
export type Labels = Readonly<Record<string, string>>;

/** Whether two readings of one metric are of the same series. No labels are the same as absent ones. */
export function areSameLabels(a: Labels = NO_LABELS, b: Labels = NO_LABELS): boolean {
  if (a === b) return true;
  for (const name in a) if (a[name] !== b[name]) return false;
  for (const name in b) if (a[name] === undefined) return false;
  return true;
}

const NO_LABELS: Labels = {};

/** Declares one metric. The HELP text, the reference page, the conformance tests and the container metric use this declaration. */
export interface MetricSpec {
  /** Full Prometheus name with base unit and suffix: `device_temperature_celsius`. */
  readonly name: string;
  readonly type: MetricType;
  /** One sentence that describes the value, not how it is read. */
  readonly help: string;
  /** Labels in addition to `device`. The values of every label are a closed or hardware-bounded set. */
  readonly labels: readonly string[];
  /** Source of the value in kernel or vendor terms: file, field, call of a library. */
  readonly source: string;
  /**
   * Present when workload owners need the metric too. The reading then also appears as `container_<name>` with the labels
   * `namespace, pod, container, resource` for a container that alone holds the device. Counters start when the container is first seen
   * with the device.
   */
  readonly container?: true;
  /** It counts faults. The agent counts those of each container itself, by the holder at the time of each fault. */
  readonly faults?: true;
  /** A reset or a reboot can wipe it: an incident keeps its last value. */
  readonly wiped?: true;
}

/** Optional properties of a metric. */
export type MetricTraits = Pick<MetricSpec, 'container' | 'faults' | 'wiped'>;

/** A metric of the agent itself. Unlike a device metric it can be a histogram of durations, in seconds. */
export interface AgentMetricSpec extends Omit<MetricSpec, 'type' | 'container' | 'wiped'> {
  readonly type: MetricType | 'histogram';
}

/** Counters beyond 2^53 are `bigint`, so that the exported text loses no digit. */
export type Value = number | bigint;

/** One value of one series. A value that could not be read has no reading; it is never 0 or NaN. */
export interface Reading {
  /** `name` of a declared {@link MetricSpec}. */
  readonly metric: string;
  readonly labels?: Labels;
  readonly value: Value;
  /**
   * Value after which a counter begins again at 0: 2^32 for a counter of 32 bits. Only where kernel or vendor document that width; absent
   * for a counter that stops at its largest value.
   */
  readonly wrapsAt?: number;
  /**
   * Monotonic clock before the read that gave the value, in milliseconds, when that was an earlier read than the device's: a source that is
   * read at its own interval. Absent when the read of the device gave it. It is no part of the series.
   */
  readonly readMs?: number;
}

/** Monotonic clock of the read that gave a value. `deviceMs`: the read of its device. */
export const readMsOf = ({ readMs }: Pick<Reading, 'readMs'>, deviceMs: number): number => readMs ?? deviceMs;

/** Chooses the series of one metric that have these labels. */
export type SeriesChoice = Pick<Reading, 'metric' | 'labels'>;

const isExact = (value: Value): boolean => typeof value === 'bigint' || Number.isInteger(value);

/** Sum of two values. Integers stay exact. */
export function addValues(a: Value, b: Value): Value {
  if (typeof a === 'number' && typeof b === 'number') return a + b;
  return isExact(a) && isExact(b) ? narrow(BigInt(a) + BigInt(b)) : Number(a) + Number(b);
}

/** `a` without `b`. Integers stay exact. */
export function subtractValues(a: Value, b: Value): Value {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return isExact(a) && isExact(b) ? narrow(BigInt(a) - BigInt(b)) : Number(a) - Number(b);
}

function narrow(value: bigint): Value {
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

/** Reads a value as JSON holds it; a `bigint` is its decimal digits. JSON turns a number that is not finite into null. */
export function restoredValue(saved: unknown): Value | undefined {
  if (typeof saved === 'number') return saved;
  return typeof saved === 'string' && /^-?\d{1,40}$/.test(saved) ? BigInt(saved) : undefined;
}
