import type { Problem } from '../../../model/collection.ts';
import type { ProblemCode } from '../problems.ts';
import type { SurplusFault } from '../smi.ts';
import type { Client } from './client.ts';
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
}

const SOUND: Told = { faults: [], problems: [] };

/** What the lines around a document of `nvidia-smi` tell. `addresses`: of all GPUs that were ever found. */
export function faultsOf({ gpus, unreadable }: Client, addresses: ReadonlySet<string>): Told {
  if (unreadable.length === 0 && !gpus.some(({ gpu }) => gpu.faults.size > 0)) return SOUND;
  const { faults, problems } = unreadableOf({ gpus, unreadable }, addresses);
  for (const { gpu, pciAddress } of gpus) {
    if (gpu.faults.has(CODE.corruptedInforom))
      faults.push({ pciAddress, fault: 'inforom', line: `infoROM is corrupted at gpu ${String(gpu.values['@id'])}` });
    if (gpu.faults.has(CODE.insufficientPower))
      problems.push({ code: 'insufficient-power', device: String(gpu.values.uuid), message: wordOf(CODE.insufficientPower) });
  }
  return { faults, problems };
}

/** A GPU without a handle does not say which it is: where as many are missing as are silent, it is one of those from before. */
function unreadableOf(
  { gpus, unreadable }: Pick<Client, 'gpus' | 'unreadable'>,
  addresses: ReadonlySet<string>,
): { readonly faults: SurplusFault[]; readonly problems: Problem[] } {
  if (unreadable.length === 0) return { faults: [], problems: [] };
  const missing = [...addresses].filter((address) => !gpus.some(({ pciAddress }) => pciAddress === address));
  const isKnown = missing.length === unreadable.length;
  const faults = (isKnown ? missing : []).map((pciAddress, at): SurplusFault => {
    const word = wordOf(unreadable[at]?.code ?? CODE.unknown);
    return { pciAddress, fault: 'lost', line: `Unable to determine the device handle for GPU ${pciAddress}: ${word}` };
  });
  const problems = (isKnown ? [] : unreadable).map(
    ({ index, code }): Problem => ({
      code: code === CODE.noPermission ? 'no-permission' : 'gpu-unreadable',
      message: `GPU at index ${index}: ${wordOf(code)}`,
    }),
  );
  return { faults, problems };
}
