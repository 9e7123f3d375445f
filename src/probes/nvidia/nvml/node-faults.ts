import type { Problem } from '../../../model/collection.ts';
import type { ProblemCode } from '../problems.ts';
import type { SurplusFault } from '../smi.ts';
import type { Client, UnreadableGpu } from './client.ts';
import { CODE, kindOf, wordOf } from './codes.ts';

/** Of codes that concern the node. */
const NODE_PROBLEMS: Readonly<Record<number, ProblemCode>> = {
  [CODE.noPermission]: 'no-permission',
  [CODE.driverNotLoaded]: 'driver-not-loaded',
  [CODE.libraryNotFound]: 'library-not-found',
  [CODE.operatingSystem]: 'no-permission',
  [CODE.libraryMismatch]: 'driver-library-mismatch',
  [CODE.gpuNotFound]: 'no-devices',
};

export function problemOf(code: number, what: string): { readonly code: ProblemCode; readonly message: string } {
  const known = NODE_PROBLEMS[code];
  const message = `NVML ${what}: ${wordOf(code)}`;
  return { code: known ?? (kindOf(code) === 'device' ? 'gpu-unreadable' : 'driver-unreachable'), message };
}

interface Told {
  readonly faults: readonly SurplusFault[];
  readonly problems: readonly Problem[];
  /** False where a GPU from before may be one of those that do not say which they are. */
  readonly isComplete: boolean;
}

/**
 * What the lines around a document of `nvidia-smi` tell. `known`: addresses of all GPUs that were ever found. `bound`: of those that the
 * kernel's driver has; empty where they are not shown.
 */
export function faultsOf(
  { gpus, unreadable }: Pick<Client, 'gpus' | 'unreadable'>,
  known: ReadonlySet<string>,
  bound: readonly string[],
): Told {
  const isMissing = (address: string): boolean => !gpus.some(({ pciAddress }) => pciAddress === address);
  const missing = [...known].filter((address) => isMissing(address) && (bound.length === 0 || bound.includes(address))).sort();
  const { faults, problems } = unreadableOf(unreadable, [bound.filter(isMissing).sort(), missing]);
  for (const { gpu, pciAddress } of gpus) {
    const { uuid = '', busId = '' } = gpu.identity;
    const codes = gpu.faults();
    if (codes.has(CODE.corruptedInforom)) faults.push({ pciAddress, fault: 'inforom', line: `infoROM is corrupted at gpu ${busId}` });
    if (codes.has(CODE.insufficientPower))
      problems.push({ code: 'insufficient-power', device: uuid, message: wordOf(CODE.insufficientPower) });
  }
  const isComplete = unreadable.length === 0 || missing.every((address) => faults.some(({ pciAddress }) => pciAddress === address));
  return { faults, problems, isComplete };
}

/**
 * A GPU without a handle does not say which it is: it is one of a list of which as many are missing as are silent. Those that the agent
 * may not open are never counted as lost.
 */
function unreadableOf(
  unreadable: readonly UnreadableGpu[],
  lists: readonly (readonly string[])[],
): { readonly faults: SurplusFault[]; readonly problems: Problem[] } {
  const silent = unreadable.filter(({ code }) => code !== CODE.noPermission);
  const missing = lists.find(({ length }) => length === silent.length);
  const faults = (missing ?? []).map((pciAddress, at): SurplusFault => {
    const code = silent[at]?.code ?? CODE.unknown;
    const line = `Unable to determine the device handle for GPU ${pciAddress}: ${wordOf(code)}`;
    return { pciAddress, fault: 'lost', line, problem: problemCodeOf(code) };
  });
  const unnamed = missing === undefined ? unreadable : unreadable.filter(({ code }) => code === CODE.noPermission);
  const problems = unnamed.map(
    ({ index, code }): Problem => ({ code: problemCodeOf(code), message: `GPU at index ${index}: ${wordOf(code)}` }),
  );
  return { faults, problems };
}

/** Of one GPU. */
function problemCodeOf(code: number): ProblemCode {
  if (code === CODE.noPermission) return 'no-permission';
  return code === CODE.insufficientPower ? 'insufficient-power' : 'gpu-unreadable';
}
