import { plainText } from '../text.ts';

const UNITS: Readonly<Record<string, number>> = { '': 1, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 };

/**
 * Parses `/proc/<pid>/fdinfo/<fd>` of a client of a graphics driver: the keys that begin with `drm-`. Keys and values are separated by a
 * colon, blanks and tabs. Source: Linux Documentation/gpu/drm-usage-stats.
 */
export function drmValues(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const line of plainText(text).split('\n')) {
    const at = line.indexOf(':');
    if (at > 0 && line.startsWith('drm-')) values.set(line.slice(0, at).trim(), line.slice(at + 1).trim());
  }
  return values;
}

/** Bytes of a size with or without a unit. A number without a unit is in bytes. Undefined for other text. */
export function drmBytes(text: string | undefined): number | undefined {
  const match = /^(\d{1,16})(?: (KiB|MiB|GiB))?$/.exec(text ?? '');
  if (match === null) return undefined;
  const bytes = Number(match[1]) * (UNITS[match[2] ?? ''] as number);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Who a client is. */
export interface DrmIdentity {
  /** `drm-pdev`, `0000:03:00.0`. */
  readonly pdev?: string;
  /** Unique for the card until the machine boots; absent on old kernels. */
  readonly id?: string;
}

export function drmIdentity(values: ReadonlyMap<string, string>): DrmIdentity {
  const [pdev, id] = [values.get('drm-pdev'), values.get('drm-client-id')];
  return {
    ...(pdev !== undefined && /^[0-9a-f:.]{7,16}$/i.test(pdev) && { pdev: pdev.toLowerCase() }),
    ...(id !== undefined && /^\d{1,20}$/.test(id) && { id }),
  };
}
