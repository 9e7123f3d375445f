import type { Device } from '../../model/device.ts';

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
    return identity === undefined ? {} : { identity };
  }
}
