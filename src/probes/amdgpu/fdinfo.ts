import { plainText } from './text.ts';

/** One client of the graphics driver: an open file of a render node, as `/proc/<pid>/fdinfo/<fd>` tells it. */
export interface DrmClient {
  /** `drm-pdev`, `0000:03:00.0`. */
  readonly pdev?: string;
  /** Unique for the card until the machine boots; absent on old kernels. */
  readonly id?: string;
  readonly vramBytes?: number;
  /** Nanoseconds that each engine worked for the client, keyed by the name of the driver. An engine that never worked is absent. */
  readonly engineNs: ReadonlyMap<string, bigint>;
}

const UNITS: Readonly<Record<string, number>> = { '': 1, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 };

/** Most engines of one client. The driver has about ten. */
const MOST_ENGINES = 32;

/**
 * Parses a client of the driver `amdgpu`; undefined for another driver or file. Keys and values are separated by a colon, blanks and tabs.
 * Unknown keys are skipped.
 */
export function parseDrmClient(text: string): DrmClient | undefined {
  const values = new Map<string, string>();
  for (const line of plainText(text).split('\n')) {
    const at = line.indexOf(':');
    if (at > 0 && line.startsWith('drm-')) values.set(line.slice(0, at).trim(), line.slice(at + 1).trim());
  }
  if (values.get('drm-driver') !== 'amdgpu') return undefined;
  const engineNs = new Map<string, bigint>();
  for (const [key, value] of values) {
    const engine = /^drm-engine-([a-z0-9_]{1,32})$/.exec(key)?.[1];
    const ns = /^(\d{1,19}) ns$/.exec(value)?.[1];
    if (engine !== undefined && ns !== undefined && engineNs.size < MOST_ENGINES) engineNs.set(engine, BigInt(ns));
  }
  const [pdev, id] = [values.get('drm-pdev'), values.get('drm-client-id')];
  // Older kernels have only drm-memory-vram. On newer ones it is the same value as drm-resident-vram.
  const vramBytes = bytesOf(values.get('drm-resident-vram')) ?? bytesOf(values.get('drm-memory-vram'));
  return {
    ...(pdev !== undefined && /^[0-9a-f:.]{7,16}$/i.test(pdev) && { pdev: pdev.toLowerCase() }),
    ...(id !== undefined && /^\d{1,20}$/.test(id) && { id }),
    ...(vramBytes !== undefined && { vramBytes }),
    engineNs,
  };
}

/** A number without a unit is in bytes. */
function bytesOf(text: string | undefined): number | undefined {
  const match = /^(\d{1,16})(?: (KiB|MiB|GiB))?$/.exec(text ?? '');
  if (match === null) return undefined;
  const bytes = Number(match[1]) * (UNITS[match[2] ?? ''] as number);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Name of an engine as in `device_utilization_ratio`. The instances of a kind are one engine there. */
export function engineOf(name: string): string {
  if (name === 'gfx' || name === 'compute') return 'gpu';
  if (/^enc/.test(name)) return 'encoder';
  if (/^dec/.test(name)) return 'decoder';
  return name.replace(/_\d+$/, '');
}
