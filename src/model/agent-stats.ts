import type { DurationCounts } from './duration-counts.ts';
import type { HostFacts } from './host-facts.ts';
import type { PluginStats } from './plugin-stats.ts';
import type { CheckpointReason, DocumentReason } from './pod-resources.ts';
import type { SocketStats } from './socket-stats.ts';
import type { WebConfigStats } from './web-config-stats.ts';

/** The configuration file in use, and whether its newest content could be used. */
export interface ConfigStatus {
  readonly file: string;
  /** SHA-256 of the content in use, in hexadecimal. */
  readonly digest: string;
  /** Wall clock at which that content was loaded, or found unchanged by an explicit reload. */
  readonly loadedAtMs: number;
  /** Why the newest content cannot be used, and what to do. */
  readonly problem?: { readonly message: string; readonly remedy: string };
  /** Options whose new values take effect at the next start. */
  readonly waiting: readonly string[];
}

/** Statistics of the agent itself, outside of the snapshot. */
export interface AgentStats {
  readonly version: string;
  /** Name of the node. */
  readonly node: string;
  /** Source revision of the build; absent when unknown. */
  readonly revision?: string;
  /** Requests to the kubelet since start, by method and gRPC status name (`OK`, `UNAVAILABLE`, …). */
  readonly podResourcesRequests: readonly { readonly method: string; readonly code: string; readonly count: number }[];
  /** Durations of the requests by method, successful or not. */
  readonly podResourcesDurations: readonly { readonly method: string; readonly durations: DurationCounts }[];
  /** Why the kubelet's checkpoint cannot be used; absent while it can. */
  readonly checkpointProblem?: CheckpointReason;
  /** For each file of a claim that cannot be used, the reason. */
  readonly claimFileProblems?: readonly DocumentReason[];
  /** Whether the kubelet's Pods API answers; absent while it was not asked. */
  readonly isPodsApiUp?: boolean;
  /** Absent while no resource is configured. */
  readonly plugin?: PluginStats;
  /** Absent without a web configuration file. */
  readonly webConfig?: WebConfigStats;
  /** Absent while no configuration file is used. */
  readonly config?: ConfigStatus;
  /** Sockets for commands and clients of the health feed; absent in a single reading. */
  readonly sockets?: readonly SocketStats[];
  /** Facts of the machine that are known so far. */
  readonly host?: HostFacts;
}
