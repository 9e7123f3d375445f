import type { Clock } from '../host/clock.ts';
import type { PodResources } from '../model/pod-resources.ts';
import type { PodResourcesOptions } from './options.ts';
import type { RequestCount, RequestCounts } from './request-counts.ts';

export interface PodResourcesPoller {
  /** Asks the kubelet. Never two at once: a call during a run waits for that run. During a back-off it asks nothing. Never rejects. */
  refresh(): Promise<void>;
  /** Begins to ask between refreshes too: when the checkpoint is written, when the socket is replaced, when a back-off ends. */
  watch(): void;
  current(): PodResources;
  stats(): PodResourcesStats;
  close(): void;
}

export interface PodResourcesStats {
  readonly requests: readonly RequestCount[];
  /** Per method. */
  readonly durations: ReturnType<RequestCounts['durations']>;
  /** Allocations that are kept although the last answer did not have them. */
  readonly held: number;
  /** Restarts of the kubelet that were noticed. */
  readonly restarts: number;
  /** Present while the kubelet's rate limit is given way to. */
  readonly backOff?: { readonly rejections: number; readonly remainingMs: number };
}

export interface PollerSettings {
  readonly options: PodResourcesOptions;
  readonly clock: Clock;
  /** After each run, and when something expires by itself. */
  readonly onChange: () => void;
}
