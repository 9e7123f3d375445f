import { type Device, deviceKey, isOtherDevice } from './device.ts';

type Named = Pick<Device, 'family' | 'id' | 'identity'> & Partial<Pick<Device, 'kind' | 'parent' | 'pciAddress'>>;
/** Facts that distinguish one piece of hardware from another. */
export type Identified = Named & Pick<Device, 'pciAddress' | 'uuid'>;

/** Key of the hardware of a device. It stays the same under another name. Without a known identity it is the name. */
export function hardwareKey(device: Named): string {
  return typeof device.identity === 'string' ? `${device.family}#${device.identity}` : deviceKey(device);
}

/**
 * Key of the place of a device, under which it was known while its identity could not be read: a card that did not start has only an
 * address. Undefined for a part, which shares the address of its device.
 */
function placeKey({ family, parent, pciAddress }: Named): string | undefined {
  return pciAddress === undefined || parent !== undefined ? undefined : deviceKey({ family, id: pciAddress });
}

/** Whether a device was known by its place only: nobody could read its identity, or only the bus showed it. */
const isNameless = ({ id, identity, pciAddress }: Identified): boolean => typeof identity !== 'string' && id === pciAddress;

/**
 * Keys of what is remembered of devices that are listed at the same time. Devices that report the same identity have a key each, and
 * each starts with what is remembered of the identity.
 */
export class HardwareKeys {
  readonly #shared: ReadonlySet<string>;

  constructor(devices: readonly Named[]) {
    const seen = new Set<string>();
    const shared = new Set<string>();
    for (const device of devices) {
      const key = hardwareKey(device);
      if (seen.has(key)) shared.add(key);
      seen.add(key);
    }
    this.#shared = shared;
  }

  of(device: Named): string {
    const hardware = hardwareKey(device);
    return typeof device.identity === 'string' && this.#shared.has(hardware) ? `${hardware}#${device.id}` : hardware;
  }

  /** Whether another device that is listed reports the same identity. */
  isShared(device: Named): boolean {
    return this.#shared.has(hardwareKey(device));
  }

  /** What is remembered of a device: of its hardware, or of its name while its identity was not known. */
  recall<T extends { readonly device: Device }>(remembered: (key: string) => T | undefined, device: Device): T | undefined {
    const own = remembered(this.of(device));
    if (own !== undefined && !isOtherDevice(own.device, device)) return own;
    for (const key of this.#otherKeysOf(device)) {
      const found = remembered(key);
      if (found !== undefined && !isOtherDevice(found.device, device)) return found;
    }
    return undefined;
  }

  #otherKeysOf(device: Named): readonly string[] {
    const hardware = hardwareKey(device);
    const place = placeKey(device);
    if (typeof device.identity !== 'string') return place === undefined || place === hardware ? [] : [place];
    return [this.#shared.has(hardware) ? hardware : `${hardware}#${device.id}`, deviceKey(device), ...(place === undefined ? [] : [place])];
  }
}

/** What was known of devices at an earlier time, to be found by their hardware. */
export class HardwareIndex<T extends { readonly device: Identified }> {
  readonly #known: readonly T[];
  readonly #byName: ReadonlyMap<string, T>;
  /** Made at the first question for a device that has another name, which is rare. */
  #byHardware: ReadonlyMap<string, T> | undefined;

  constructor(known: readonly T[]) {
    this.#known = known;
    this.#byName = new Map(known.map((one) => [deviceKey(one.device), one]));
  }

  /** What was known of a device: under its present name, or under an earlier one. `present`: hardware of the devices now, by device key. */
  of(device: Identified, present: ReadonlyMap<string, string>): T | undefined {
    const [hardware, atName] = [hardwareKey(device), this.#byName.get(deviceKey(device))];
    if (atName !== undefined && hardwareKey(atName.device) === hardware && !isOtherDevice(atName.device, device)) return atName;
    this.#byHardware ??= new Map(this.#known.map((one) => [hardwareKey(one.device), one]));
    const sameHardware = this.#byHardware.get(hardware);
    // Another device that reports the same identity is still present under its own name.
    if (sameHardware !== undefined && present.get(deviceKey(sameHardware.device)) !== hardware) return sameHardware;
    const wasIdentified = typeof atName?.device.identity === 'string';
    if (atName === undefined) return this.#atPlace(device, present);
    return wasIdentified || isOtherDevice(atName.device, device) ? undefined : atName;
  }

  /** What was known of the place of a device whose identity can be read only now. */
  #atPlace(device: Identified, present: ReadonlyMap<string, string>): T | undefined {
    const place = device.id === device.pciAddress && typeof device.identity !== 'string' ? undefined : placeKey(device);
    const found = place === undefined || present.has(place) ? undefined : this.#byName.get(place);
    return found !== undefined && isNameless(found.device) && found.device.kind === device.kind ? found : undefined;
  }
}
