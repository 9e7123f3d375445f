import { countOf } from '../kit/count.ts';
import { type DrmIdentity, drmBytes, drmIdentity, drmValues } from '../kit/drm/fdinfo.ts';

/** Work of one client on one class of engines. */
export interface EngineWork {
  /** Nanoseconds (i915) or cycles (xe) that the engines worked for the client. */
  readonly busy: bigint;
  /** Cycles that passed for the class, on xe. It is a clock of the class, and not of the client. */
  readonly total?: bigint;
  /** Number of engines of the class. */
  readonly capacity: number;
}

/** One client of the driver: an open file of a card, as `/proc/<pid>/fdinfo/<fd>` tells it. */
export interface DrmClient extends DrmIdentity {
  /** Memory of the card. Absent on integrated GPUs, which use the memory of the host. */
  readonly memoryBytes?: number;
  /** Keyed by {@link engineOf}. */
  readonly engines: ReadonlyMap<string, EngineWork>;
}

const CLASSES: Readonly<Record<string, string>> = {
  rcs: 'render',
  bcs: 'copy',
  vcs: 'video',
  vecs: 'video_enhance',
  ccs: 'compute',
  'video-enhance': 'video_enhance',
};

/** Name of a class of engines as in `device_utilization_ratio`: `rcs` and `render` are `render`. */
export const engineOf = (name: string): string => CLASSES[name] ?? name.replaceAll('-', '_');

const MOST_ENGINES = 16;
const MOST_REGIONS = 16;

/** Parses a client of i915 or xe; undefined for another driver or file. Unknown keys are skipped. */
export function parseDrmClient(text: string): DrmClient | undefined {
  const values = drmValues(text);
  const driver = values.get('drm-driver');
  if (driver !== 'i915' && driver !== 'xe') return undefined;
  const engines = new Map<string, EngineWork>();
  for (const [key, value] of values) {
    const name = (driver === 'xe' ? /^drm-cycles-([a-z0-9-]{1,32})$/ : /^drm-engine-(?!capacity-)([a-z0-9-]{1,32})$/).exec(key)?.[1];
    if (name === undefined || engines.size >= MOST_ENGINES) continue;
    const busy = countOf(driver === 'xe' ? value : value.replace(/ ns$/, ''));
    const total = countOf(values.get(`drm-total-cycles-${name}`) ?? '');
    // Without the clock of its class a number of cycles means nothing.
    if (busy === undefined || (driver === 'xe' && total === undefined)) continue;
    engines.set(engineOf(name), {
      busy,
      capacity: capacityOf(values.get(`drm-engine-capacity-${name}`)),
      ...(driver === 'xe' && total !== undefined && { total }),
    });
  }
  const memoryBytes = memoryOf(values, 'resident') ?? memoryOf(values, 'total') ?? memoryOf(values, 'memory');
  return { ...drmIdentity(values), ...(memoryBytes !== undefined && { memoryBytes }), engines };
}

/** The key is there only for more than one engine. */
const capacityOf = (text: string | undefined): number => (/^[1-9]\d{0,2}$/.test(text ?? '') ? Number(text) : 1);

/** Sum over the memories of the card, one for each tile: `vram0` on xe, `local0` on i915. Undefined when one of them cannot be read. */
function memoryOf(values: ReadonlyMap<string, string>, kind: string): number | undefined {
  const regions = [...values].filter(([key]) => new RegExp(`^drm-${kind}-(?:vram|local)\\d{1,2}$`).test(key)).slice(0, MOST_REGIONS);
  const sizes = regions.map(([, value]) => drmBytes(value));
  return sizes.length === 0 || sizes.includes(undefined) ? undefined : sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
}

/** Share of the engines of a class that worked for a client between two reads, 0 to 1; undefined when the reads do not tell. */
export function shareOf(before: EngineWork | undefined, now: EngineWork, elapsedMs: number): number | undefined {
  if (before === undefined || now.busy < before.busy) return undefined;
  const busy = Number(now.busy - before.busy) / now.capacity;
  if (now.total === undefined) return elapsedMs <= 0 ? undefined : Math.min(busy / 1e6 / elapsedMs, 1);
  if (before.total === undefined || now.total <= before.total) return undefined;
  return Math.min(busy / Number(now.total - before.total), 1);
}
