export interface TimeSpan {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** When the agent judged devices, on the wall clock. Plain data, saved over restarts: without it, a pause looks like health. */
export interface Watched {
  /** Oldest first. The last one goes on while the agent runs. */
  readonly spans: readonly TimeSpan[];
  /** When each device was first judged, keyed by device key. */
  readonly since: Readonly<Record<string, number>>;
}

export const NEVER_WATCHED: Watched = { spans: [], since: {} };
