/** What the machine is, as far as its platform tells. Absent when it does not. */
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
