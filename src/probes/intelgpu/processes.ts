import { drmBytes, drmIdentity, drmValues } from '../kit/drm/clients.ts';
import type { DrmClient, EngineWork } from '../kit/drm/users.ts';
import { countOf } from '../kit/text.ts';

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
