import type { SeriesChoice } from './metric.ts';

/** What shows that a device of a family works. A family without it has no idle and no busy time: its use is unknown. */
export interface ActivitySpec {
  /** Engines of `device_utilization_ratio`. The device is busy while one of them is above the threshold. */
  readonly utilization?: {
    /** Default of the option: share of time, 0 to 1. */
    readonly above: number;
    /** Engines that count. All engines when absent. */
    readonly engines?: readonly string[];
    /**
     * Means over the time since the read before, keyed by engine. Where such a mean was read, it counts instead of the utilization of that
     * engine, which is a sample of the driver's last fraction of a second: one sample for ten seconds makes short steps whole or nothing.
     */
    readonly means?: Readonly<Record<string, SeriesChoice>>;
  };
  /** Counters of bytes. The device is busy while their sum grows faster than the threshold. */
  readonly traffic?: {
    /** Names of declared counters; all series of each are added. */
    readonly metrics: readonly string[];
    /** Default of the option: bytes per second. */
    readonly above: number;
  };
  /**
   * True when only processes of the holder have business on the device, as on a GPU. False when the host uses it too: the network of
   * the node runs over its adapters.
   */
  readonly isForHoldersOnly: boolean;
}

/** Thresholds that the configuration sets, keyed by family. */
export type IdleThresholds = Readonly<Record<string, { readonly utilization?: number; readonly 'bytes-per-second'?: number }>>;
