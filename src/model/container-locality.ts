/** What a family's devices are for the transfers between devices. `plain-nic`: a network device without verbs, which reaches no GPU directly. */
export type DeviceRole = 'gpu' | 'nic' | 'plain-nic';

/** Two devices of one container. */
export interface DevicePair {
  /** Key of the device. */
  readonly from: string;
  readonly to: string;
  /** The way between them; absent when unknown. */
  readonly path?: string;
}

/** How near the devices of one container are to each other and to its CPUs. */
export interface ContainerLocality {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Keys of its GPUs and network devices. */
  readonly gpus: readonly string[];
  readonly nics: readonly { readonly device: string; readonly hasVerbs: boolean }[];
  /** Each pair; of a container with more than 256 pairs only the farthest one of each device. */
  readonly pairs: readonly DevicePair[];
  /** The farthest way between two of its GPUs; absent with one GPU, or when a way is unknown. */
  readonly gpuPath?: string;
  /** The farthest way from a GPU to the nearest network device that the container holds; absent without one, or when a way is unknown. */
  readonly nicPath?: string;
  /** Devices on other NUMA nodes than the CPUs of the container; absent without exclusive CPUs, or when a node is unknown. */
  readonly offNode?: number;
}
