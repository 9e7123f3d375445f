import type { Device } from '../../model/device.ts';

interface Nameless {
  readonly identity: string | null | undefined;
  /** The number that the device tells; undefined when it tells none. */
  readonly wanted: string | undefined;
  /** Its place in the machine, which no other device has. */
  readonly fallback: string;
}

/**
 * Names of devices of which several may tell one number. The first one is called by the number, and the others by their places. A device
 * keeps its name whichever of them comes or leaves.
 */
export class FallbackNames {
  readonly #used: Set<string>;

  /** `known`: devices that an earlier probe found. */
  constructor(known: readonly Device[]) {
    this.#used = new Set(known.map(({ identity, id }) => `${identity} ${id}`));
  }

  /** Names of all devices of one collection, in their order. */
  of(devices: readonly Nameless[]): readonly string[] {
    const taken = new Set<string>();
    return devices.map(({ identity, wanted, fallback }) => {
      const place = `${identity} ${fallback}`;
      if (wanted === undefined || this.#used.has(place)) return fallback;
      if (taken.has(wanted)) {
        this.#used.add(place);
        return fallback;
      }
      taken.add(wanted);
      return wanted;
    });
  }
}
