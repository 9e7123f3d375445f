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
