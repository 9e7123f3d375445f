import { CODE } from './codes.ts';
import type { Gpu } from './gpu.ts';
import type { Library } from './library.ts';
import { callForNumber } from './question.ts';

/** `NVML_P2P_CAPS_INDEX_NVLINK`. */
const NVLINK = 2;
/** `NVML_P2P_STATUS_OK` and `NVML_P2P_STATUS_UNKNOWN`; the other states are reasons why there is no access. */
const OK = 0;
const UNKNOWN = 6;

/** Whether each GPU reaches each other GPU over NVLink, keyed by the first GPU and then by the second. Pairs that were not read are absent. */
export type PeerAccess = ReadonlyMap<Gpu, ReadonlyMap<Gpu, boolean>>;

/** Asks the driver about the pairs of GPUs that have links. A split GPU reaches no other GPU, so it is not asked about. */
export function readPeerAccess(library: Library, gpus: readonly Gpu[]): PeerAccess {
  const whole = gpus.filter((gpu) => !gpu.isLost && !gpu.maySplit && gpu.linkEnds.ofLink.size > 0);
  return new Map(whole.map((gpu) => [gpu, gpu.tracker.during('nvmlDeviceGetP2PStatus', () => accessOf(library, gpu, whole))]));
}

function accessOf(library: Library, gpu: Gpu, all: readonly Gpu[]): ReadonlyMap<Gpu, boolean> {
  const access = new Map<Gpu, boolean>();
  for (const other of all) {
    if (other === gpu) continue;
    const code = callForNumber(library, 'nvmlDeviceGetP2PStatus', 'hhi', gpu.handle, other.handle, NVLINK);
    const state = library.scratch.u32(0);
    if (code === CODE.success && state !== UNKNOWN) access.set(other, state === OK);
  }
  return access;
}
