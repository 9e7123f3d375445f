import type { Problem } from '../../model/collection.ts';
import type { GpuSample } from './sample.ts';
import type { SurplusFault } from './smi.ts';

/** What one look told of the node, by whichever way. */
export interface NodeSample {
  /** The way, for people. */
  readonly source: string;
  readonly driver?: string | undefined;
  readonly cudaVersion?: string | undefined;
  /** How many GPUs the driver has, by its own word; 0 where it does not say. */
  readonly announced: number;
  readonly gpus: readonly GpuSample[];
  /** GPUs of which only an address is known, and what is wrong with them. */
  readonly faults: readonly SurplusFault[];
  readonly problems: readonly Problem[];
  /** False where a GPU from before may be there and is not named. */
  readonly isComplete: boolean;
  readonly problem?: undefined;
}
