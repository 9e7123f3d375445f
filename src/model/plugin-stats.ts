import type { DurationCounts } from './duration-counts.ts';

/** Statistics of the device plugin since its start, for the metrics `device_agent_plugin_*`. */
export interface PluginStats {
  readonly resources: readonly PluginResourceStats[];
}

export interface PluginResourceStats {
  readonly resource: string;
  /** A `ListAndWatch` stream is open, and the kubelet's allocatable resources, if known, contain the resource or no device is healthy. */
  readonly registered: boolean;
  /** Open `ListAndWatch` streams. */
  readonly streams: number;
  /** Number of devices reported to the kubelet as healthy. */
  readonly healthy: number;
  readonly unhealthy: number;
  /** Registration attempts, keyed by result: `ok` or a reason. */
  readonly registrations: Readonly<Record<string, number>>;
  /** Wall clock of the last sent list; absent before the first. */
  readonly lastUpdateMs?: number;
  /** Allocation requests of containers, keyed by `ok` or the reason of the refusal. */
  readonly allocations: Readonly<Record<string, number>>;
  readonly calls: readonly PluginCallStats[];
}

/** Answered calls of one method; for `ListAndWatch` the lists, each until the stream accepted it. */
export interface PluginCallStats {
  /** `Allocate`, … */
  readonly method: string;
  readonly durations: DurationCounts;
}
