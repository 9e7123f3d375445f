import type { DurationCounts } from './duration-counts.ts';

/** What the device plugin did since its start, for the metrics `device_agent_plugin_*`. */
export interface PluginStats {
  readonly resources: readonly PluginResourceStats[];
}

export interface PluginResourceStats {
  readonly resource: string;
  /** The kubelet has the resource: a `ListAndWatch` stream is open, and what it can hand out, where it tells, has devices of it if any is healthy. */
  readonly registered: boolean;
  /** Open `ListAndWatch` streams. */
  readonly streams: number;
  /** Devices as the kubelet is told of them. */
  readonly healthy: number;
  readonly unhealthy: number;
  /** Attempts to register, by how they ended: `ok` or a reason. */
  readonly registrations: Readonly<Record<string, number>>;
  /** Wall clock of the last list that was sent; absent before the first. */
  readonly lastUpdateMs?: number;
  /** Containers that asked for devices, by `ok` or the reason of the refusal. */
  readonly allocations: Readonly<Record<string, number>>;
  readonly calls: readonly PluginCallStats[];
}

/** Answered calls of one method; of `ListAndWatch` the lists, each until it was taken up. */
export interface PluginCallStats {
  /** `Allocate`, … */
  readonly method: string;
  readonly durations: DurationCounts;
}
