import { deviceKey } from '../../model/device.ts';
import type { RecordsByKey } from '../../model/device-record.ts';

export interface Relatives {
  /** Keys of the parts of a device and of the whole that it is a part of. */
  of(key: string): readonly string[];
  parts(key: string): readonly string[];
}

const NO_KEYS: readonly string[] = [];

/** Relations between the present devices. A missing part does not make its parent a whole with parts. */
export function kinOf(known: RecordsByKey): Relatives {
  const parts = new Map<string, string[]>();
  const wholes = new Map<string, string>();
  for (const [key, { device, missingSinceMs }] of known) {
    if (device.parent === undefined || missingSinceMs !== undefined) continue;
    const whole = deviceKey({ family: device.family, id: device.parent });
    wholes.set(key, whole);
    parts.set(whole, [...(parts.get(whole) ?? []), key]);
  }
  const partsOf = (key: string): readonly string[] => parts.get(key) ?? NO_KEYS;
  const of = (key: string): readonly string[] => {
    const whole = wholes.get(key);
    return whole === undefined ? partsOf(key) : [...partsOf(key), whole];
  };
  return { parts: partsOf, of };
}
