import type { Reading, Value } from './metric.ts';

/** One counter of a container: its growth while the container alone held the device. */
export interface OwnCounter extends Pick<Reading, 'metric' | 'labels' | 'value'> {
  /** The device's counter at the read that gave `value`. Absent while the next read is not compared with it. */
  readonly last?: Value;
}

/**
 * What one container used of one device since it got the device, or a user of the device: then `container` and `resource` are empty, and without a
 * name of the pod its UID is `pod`. All values only grow. Seconds are fractional.
 */
export interface ContainerUsage {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly resource: string;
  /** UID of the pod; absent while neither the kubelet's checkpoint nor its Pods API has it. */
  readonly uid?: string;
  /** Labels of the pod that the configuration asks for, from the Pods API. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Key of the device, `family/id`. */
  readonly device: string;
  readonly model?: string;
  /** Wall clock at which the container was first seen with the device. */
  readonly sinceMs: number;
  /** Wall clock at which the container was last seen with the device; absent while it holds the device. */
  readonly endedAtMs?: number;
  /** Time for which the container was seen with the device. */
  readonly allocatedSeconds: number;
  /** The container's part of that time, when several containers hold the device. */
  readonly shareSeconds: number;
  /** The part of the allocated time in which users had the device by delegation. It is neither idle nor busy nor unobserved. */
  readonly delegatedSeconds?: number;
  /** Time that each engine worked, keyed by engine; `traffic` for a device that moves data. Empty while no use was observed. */
  readonly busySeconds: Readonly<Record<string, number>>;
  /** Time in which the device did nothing. */
  readonly idleSeconds: number;
  /** Allocated time in which the use was not observed. */
  readonly unobservedSeconds: number;
  /** From the driver's counter, for time in which the container alone held the device. */
  readonly energyJoules?: number;
  /** Part of the energy of a shared device; power times time where the driver counts no energy. */
  readonly energyEstimatedJoules?: number;
  /** Integral of the memory in use. */
  readonly memoryByteSeconds?: number;
  /** Bytes that moved while the container alone held the device. */
  readonly receivedBytes?: Value;
  readonly transmittedBytes?: Value;
  /** Wall clock of the last reading that showed work; absent before the first. */
  readonly lastActiveMs?: number;
  /** The container is younger than a minute: the metrics page exports its totals as 0. */
  readonly isNew?: true;
  /** Absent before the first read that began in such a time. */
  readonly counters?: readonly OwnCounter[];
}

/** How one device spent its time since the start of the agent. The first, second and fourth values add up to that time. */
export interface DeviceUsage {
  /** Key of the device, `family/id`. */
  readonly device: string;
  /** Time in which at least one container held it, or a pod used it without holding it. */
  readonly allocatedSeconds: number;
  readonly unallocatedSeconds: number;
  /** Time in which its verdict was unhealthy, allocated or not. */
  readonly unhealthySeconds: number;
  /** Time for which its holder is unknown: the agent did not run, or the kubelet did not answer. */
  readonly unobservedSeconds: number;
}

/** All accounts at one time. */
export interface Usage {
  /**
   * Containers that hold a device now, and then those that ended a short time ago, the last one last. Those of several pods with one name
   * differ in the UID only.
   */
  readonly containers: readonly ContainerUsage[];
  readonly devices: readonly DeviceUsage[];
}

/** Whether the work of one container moves on, judged over all its devices. Plain data. Times are wall clock in milliseconds. */
export interface ContainerWaiting {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Keys of its devices that can wait, `family/id`. */
  readonly devices: readonly string[];
  /** `stalled`: it waits after a time in which its steps were seen. `unknown`: something that the answer needs was not read. */
  readonly state: 'not-waiting' | 'waiting' | 'stalled' | 'unknown';
  /** Since when nothing moves; present while it waits. */
  readonly sinceMs?: number;
  /** When a reading last showed work; absent before the first. */
  readonly lastProgressMs?: number;
  /** Period of its steps; absent while none was seen. */
  readonly stepSeconds?: number;
  /** Why the state is unknown, in words; absent otherwise. */
  readonly unknown?: string;
}
