import { Agent } from './agent.ts';
import type { Smi } from './smi.ts';

/** What all stages need. */
export interface Ground {
  readonly smi: Smi;
  /** Path of `nvidia-smi`. */
  readonly program: string;
  /** UUIDs of the GPUs in the order of `nvidia-smi`. */
  readonly uuids: readonly string[];
  /** An empty folder for the files of the run. */
  readonly folder: string;
  /** Options that give the agent this machine; on a real one none. */
  readonly machineOptions: readonly string[];
  /** Root of the process tree that the agent reads. */
  readonly procfs: string;
  /** Folder with the programs of loads; absent where there is none. */
  readonly lab?: string | undefined;
  /** Whether a reset of the GPU was asked for. */
  readonly mayReset: boolean;
}

/** Every value is read at each refresh, so that nothing on the page is older than a second. */
const ALL_AT_ONCE = ['--refresh.slow=0s', '--refresh.facts=0s'];
const OTHERS = ['amdgpu', 'intelgpu', 'infiniband', 'netdev', 'nvme'].map((family) => `--no-probe.${family}`);

/** Starts the agent for one stage. Nothing of it is kept on the machine. */
export function startAgent(ground: Ground, options: readonly string[] = [], isAllAtOnce = true): Promise<Agent> {
  const all = [
    '--refresh.interval=1s',
    // The library, or nothing: a comparison of nvidia-smi with itself would prove nothing.
    '--probe.nvidia.source=nvml',
    '--state.file=',
    ...OTHERS,
    ...(isAllAtOnce ? ALL_AT_ONCE : []),
    ...ground.machineOptions,
    ...options,
  ];
  // The option of a stage takes the place of an earlier one.
  return Agent.start([...new Map(all.map((option) => [option.split('=', 1)[0], option])).values()], ground.uuids);
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
