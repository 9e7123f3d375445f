export type MetricType = 'gauge' | 'counter';

/** Label names and values of one series, without those that the exposition adds (`device`, `namespace`, …). */
export type Labels = Readonly<Record<string, string>>;

/**
 * Declaration of one metric. HELP text, reference page, conformance tests and the container twin all come from here,
 * so a metric is spelled once.
 */
export interface MetricSpec {
  /** Full Prometheus name, base unit and suffix included: `device_temperature_celsius`. */
  readonly name: string;
  readonly type: MetricType;
  /** One sentence. What it is, not how it is read. */
  readonly help: string;
  /** Labels besides `device`. Every label takes its values from a closed or hardware-bounded set. */
  readonly labels: readonly string[];
  /** Where the number comes from, in the words of kernel or vendor: file, field, NVML call. */
  readonly source: string;
  /**
   * Present when a workload owner asks for it too: the reading then also appears as `container_<name>` with the labels
   * `namespace, pod, container, resource` for a container that alone holds the device. Counters of the twin count from
   * the moment the container was first seen with the device.
   */
  readonly container?: true;
}

/** A metric that the agent has of itself. Unlike a reading of a device it can be a histogram: of durations, in seconds. */
export interface AgentMetricSpec extends Omit<MetricSpec, 'type' | 'container'> {
  readonly type: MetricType | 'histogram';
}

/** Counters beyond 2^53 are `bigint`, so that no digit is lost before Prometheus parses the text. */
export type Value = number | bigint;

/** One value of one series. A value that could not be read has no reading: never 0, never NaN. */
export interface Reading {
  /** `name` of a declared {@link MetricSpec}. */
  readonly metric: string;
  readonly labels?: Labels;
  readonly value: Value;
}
