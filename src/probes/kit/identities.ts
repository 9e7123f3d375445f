import { defined } from '../../model/defined.ts';
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

/**
 * Last known identities of devices that cannot report theirs at all times: a card that sleeps, a board that does not answer, an interface in
 * the network namespace of a container. The name of such a device is its place on the bus. The last identity read there stays valid until
 * a read returns another one.
 */
export class LastIdentities {
  readonly #last: Map<string, string>;

  /** `known`: devices that an earlier probe found. */
  constructor(known: readonly Device[]) {
    this.#last = new Map(known.flatMap(({ id, identity }) => (typeof identity === 'string' ? [[id, identity]] : [])));
  }

  /** `read`: the unique identity that the device reports now; undefined when it reports none. */
  of(id: string, read: string | undefined): Pick<Device, 'identity'> {
    if (read !== undefined) this.#last.set(id, read);
    const identity = read ?? this.#last.get(id);
    return defined({ identity });
  }
}
