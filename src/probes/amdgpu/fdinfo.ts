import { type DrmIdentity, drmBytes, drmIdentity, drmValues } from '../kit/drm/fdinfo.ts';

/** One client of the graphics driver: an open file of a render node, as `/proc/<pid>/fdinfo/<fd>` tells it. */
export interface DrmClient extends DrmIdentity {
  readonly vramBytes?: number;
  /** Nanoseconds that each engine worked for the client, keyed by the name of the driver. An engine that never worked is absent. */
  readonly engineNs: ReadonlyMap<string, bigint>;
}

/** Most engines of one client. The driver has about ten. */
const MOST_ENGINES = 32;

/**
 * Parses a client of the driver `amdgpu`; undefined for another driver or file. Keys and values are separated by a colon, blanks and tabs.
 * Unknown keys are skipped.
 */
export function parseDrmClient(text: string): DrmClient | undefined {
  const values = drmValues(text);
  if (values.get('drm-driver') !== 'amdgpu') return undefined;
  const engineNs = new Map<string, bigint>();
  for (const [key, value] of values) {
    const engine = /^drm-engine-([a-z0-9_]{1,32})$/.exec(key)?.[1];
    const ns = /^(\d{1,19}) ns$/.exec(value)?.[1];
    if (engine !== undefined && ns !== undefined && engineNs.size < MOST_ENGINES) engineNs.set(engine, BigInt(ns));
  }
  // Older kernels have only drm-memory-vram. On newer ones it is the same value as drm-resident-vram.
  const vramBytes = drmBytes(values.get('drm-resident-vram')) ?? drmBytes(values.get('drm-memory-vram'));
  return {
    ...drmIdentity(values),
    ...(vramBytes !== undefined && { vramBytes }),
    engineNs,
  };
}

/** Name of an engine as in `device_utilization_ratio`. The instances of a kind are one engine there. */
export function engineOf(name: string): string {
  if (name === 'gfx' || name === 'compute') return 'gpu';
  if (/^enc/.test(name)) return 'encoder';
  if (/^dec/.test(name)) return 'decoder';
  return name.replace(/_\d+$/, '');
}
