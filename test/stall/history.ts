/** What was read of one device at one time. A value that was not read is left out; it is never 0 in its place. */
export interface DeviceValues {
  /** Share of time in which a kernel ran, 0 to 1, as the driver samples it at the read: over its last 1/6 s to 1 s. Short steps alias it. */
  readonly utilization?: number;
  /** Mean share of time in which the tensor units worked since the read before, 0 to 1 (GPM: Hopper and later). */
  readonly tensor?: number;
  /** Mean share of the memory bandwidth since the read before, 0 to 1 (GPM). */
  readonly dram?: number;
  /** Mean share of time of these pipes since the read before, 0 to 1 (GPM). Absent in a history of a reader that asks for tensor units only. */
  readonly fp16?: number;
  readonly fp32?: number;
  readonly fp64?: number;
  readonly integer?: number;
  /** Video engines, as the driver samples them. */
  readonly encoder?: number;
  readonly decoder?: number;
  /** Mean power since the read before. */
  readonly watts?: number;
  /** Device memory in use. A GPU that no process uses has next to none. */
  readonly memoryBytes?: number;
  /** Mean bytes per second since the read before, both directions and all links of the device together. */
  readonly nvlinkBytesPerSecond?: number;
  readonly pcieBytesPerSecond?: number;
  /** The same of a network adapter. */
  readonly nicBytesPerSecond?: number;
}

export interface HistoryDevice {
  readonly kind: 'gpu' | 'mig' | 'nic';
  /** Power limit in force; absent where it cannot be read, and for a network adapter. */
  readonly limitWatts?: number;
  /** As the agent names it; for devices whose counters are known to lie. */
  readonly model?: string;
}

export interface HistoryContainer {
  readonly pod: string;
  readonly container: string;
  /** Ids of the devices it holds. Two containers that name one device share it. */
  readonly devices: readonly string[];
  /** Absent: from the first read on, and to the last one. */
  readonly fromSeconds?: number;
  readonly toSeconds?: number;
}

/** All devices at one time. A device that is left out was not read. */
export interface HistoryRead {
  readonly atSeconds: number;
  readonly devices: Readonly<Record<string, DeviceValues>>;
}

/** The agent ends and starts again. There are no reads in between. */
export interface HistoryRestart {
  readonly endedAtSeconds: number;
  readonly startedAtSeconds: number;
}

/** What was really the case. `fromSeconds` is the moment at which it began, not the moment at which it can be told. */
export interface HistoryTruth {
  readonly state: 'BusyWaiting' | 'Stalled';
  readonly pod: string;
  readonly container: string;
  readonly fromSeconds: number;
  readonly toSeconds: number;
  /** Why no reader of these values can know it, for example because the bytes are not read. It is then counted apart. */
  readonly unknowable?: string;
}

/** The steps that a container really made in a time. */
export interface HistorySteps {
  readonly pod: string;
  readonly container: string;
  readonly fromSeconds: number;
  readonly toSeconds: number;
  readonly stepSeconds: number;
}

/** Readings of the devices of one node over some hours, with what was really the case. Times are seconds from its start. */
export interface StallHistory {
  /** Says what is special about it. Each is unique in the corpus. */
  readonly name: string;
  /** One of the kinds of the README, for the table of results. */
  readonly kind: string;
  /** Where its figures come from: a publication, a measurement, or "simulation" with what was assumed. */
  readonly source: string;
  /** Usual time between two reads. */
  readonly everySeconds: number;
  readonly devices: Readonly<Record<string, HistoryDevice>>;
  readonly containers: readonly HistoryContainer[];
  /** Starts of the container within its pod: from then on its processes are those of a container with this id. */
  readonly runs?: readonly { readonly fromSeconds: number; readonly containerId: string }[];
  /** In the order of time. */
  readonly reads: readonly HistoryRead[];
  readonly restarts?: readonly HistoryRestart[];
  readonly truth: readonly HistoryTruth[];
  readonly steps?: readonly HistorySteps[];
}

/** A history is made when it is needed, so that the corpus is code and not megabytes of numbers. The same seed gives the same history. */
export interface HistorySource {
  readonly name: string;
  make(): StallHistory;
}
