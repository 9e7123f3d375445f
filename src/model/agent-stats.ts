import type { DurationCounts } from './duration-counts.ts';
import type { CheckpointReason, ClaimFileReason } from './pod-resources.ts';

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
  /** Where people reach the pages of this agent; absent when it is not configured. */
  readonly pagesUrl?: string;
  /** Source revision of the build; absent when unknown. */
  readonly revision?: string;
  /** Requests to the kubelet since start, by method and gRPC status name (`OK`, `UNAVAILABLE`, …). */
  readonly podResourcesRequests: readonly { readonly method: string; readonly code: string; readonly count: number }[];
  /** Durations of the requests by method, successful or not. */
  readonly podResourcesDurations: readonly { readonly method: string; readonly durations: DurationCounts }[];
  /** Why the kubelet's checkpoint cannot be used; absent while it can. */
  readonly checkpointProblem?: CheckpointReason;
  /** For each file of a claim that cannot be used, the reason. */
  readonly claimFileProblems?: readonly ClaimFileReason[];
  /** Whether the kubelet's Pods API answers; absent while it was not asked. */
  readonly isPodsApiUp?: boolean;
  /** How often each device became unhealthy within the last seven days, by the kept incidents; absent where none are kept. */
  readonly failures?: readonly { readonly device: string; readonly count: number }[];
  /** Absent while no resource is configured. */
  readonly plugin?: PluginStats;
  /** Absent without a web configuration file. */
  readonly webConfig?: WebConfigStats;
  /** Absent while no configuration file is used. */
  readonly config?: ConfigStatus;
  /** Lines of the ledger that the latest report of usage skipped; absent before the first report. */
  readonly ledgerDamagedLines?: number;
  /** Sockets for commands and clients of the health feed; absent in a single reading. */
  readonly sockets?: readonly SocketStats[];
  /** Facts of the machine that are known so far. */
  readonly host?: HostFacts;
}

/** State of the web configuration file. */
export interface WebConfigStats {
  /** False after a change of the file that could not be used. */
  readonly isSuccessful: boolean;
  /** When the file was last read and used. */
  readonly lastSuccessMs: number;
}

/** Sockets that clients of the agent look for. Closed set, a label of a metric. */
export type SocketName = 'control' | 'dra' | 'nvhcd' | 'metricssvc' | 'xpumd';

export interface SocketStats {
  readonly name: SocketName;
  readonly path: string;
  /** Why clients do not reach an agent there; absent while they do. */
  readonly problem?: string;
}

/** Statistics of the device plugin since its start, for the metrics `device_agent_plugin_*`. */
export interface PluginStats {
  readonly resources: readonly PluginResourceStats[];
}

/** What the kubelet offers to pods, compared with the healthy ids that it was told. */
export interface OfferDifference {
  /** Number of ids that only one of the two has. */
  readonly ids: number;
  /** Number of ids that the kubelet offers. */
  readonly offered: number;
  /** Wall clock of the begin; absent while there is no difference. */
  readonly sinceMs?: number;
}

export interface PluginResourceStats {
  readonly resource: string;
  /** A `ListAndWatch` stream is open, and the kubelet's allocatable resources, if known, contain the resource or no device is healthy. */
  readonly registered: boolean;
  /** Absent while it is unknown what the kubelet offers. */
  readonly difference?: OfferDifference;
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

/** Header of each answer of the API: which agent answers, as a dictionary of structured fields (RFC 9651). Lower case, as Node names headers. */
export const IDENTITY_HEADER = 'device-agent';

export interface AgentIdentity {
  readonly node: string;
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly startedMs: number;
}

/** `node="gpu-01", pid=7, started=@1764180485` */
export function identityText({ node, pid, startedMs }: AgentIdentity): string {
  const name = node.replace(/[^ !#-[\]-~]/g, '?');
  return `node="${name}", pid=${pid}, started=@${Math.floor(startedMs / 1_000)}`;
}

/** Facts of the machine. A field is absent when the platform does not report it. */
export interface HostFacts {
  readonly manufacturer?: string;
  readonly model?: string;
  readonly cpuModel?: string;
  readonly cpus?: number;
  readonly memoryBytes?: number;
  readonly operatingSystem?: string;
  readonly kernel?: string;
  readonly numaNodes?: number;
}
