import type { Device } from '../../model/device.ts';

/**
 * Identities of devices that do not tell theirs at all times: a card that sleeps, a board that does not answer, an interface that a
 * container has. Their name is their place on the bus, so the last identity read there is still theirs until another one is read.
 */
export class LastIdentities {
  readonly #last: Map<string, string>;

  /** `known`: devices that an earlier probe found. */
  constructor(known: readonly Device[]) {
    this.#last = new Map(known.flatMap(({ id, identity }) => (typeof identity === 'string' ? [[id, identity]] : [])));
  }

  /** `read`: what the device tells of itself now, unique for it; undefined when it tells nothing. */
  of(id: string, read: string | undefined): Pick<Device, 'identity'> {
    if (read !== undefined) this.#last.set(id, read);
    const identity = read ?? this.#last.get(id);
    return identity === undefined ? {} : { identity };
  }
}
