import type { DurationCounts } from './duration-counts.ts';
import type { HostFacts } from './host-facts.ts';
import type { PluginStats } from './plugin-stats.ts';

/** What the agent knows of itself besides the snapshot, at the moment of asking. */
export interface AgentStats {
  /** Wall clock of the moment of asking. */
  readonly nowMs: number;
  readonly version: string;
  /** Source revision that the build was made from; absent when the build does not know. */
  readonly revision?: string;
  /** Requests to the kubelet since start, by method and gRPC status name (`OK`, `UNAVAILABLE`, …). */
  readonly podResourcesRequests: readonly { readonly method: string; readonly code: string; readonly count: number }[];
  /** How long requests of each method took, answered or not. */
  readonly podResourcesDurations: readonly { readonly method: string; readonly durations: DurationCounts }[];
  /** Absent while no resource is configured. */
  readonly plugin?: PluginStats;
  /** What the machine is, as far as known by now. */
  readonly host?: HostFacts;
}
