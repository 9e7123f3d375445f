/** Devices that the init containers of the pod that is being admitted leave to those that come after them. */
export class LeftOvers {
  #podUid = '';
  readonly #ids = new Map<string, Set<string>>();

  /** Those of another pod are forgotten. */
  begin(podUid: string): void {
    if (podUid !== this.#podUid) this.#ids.clear();
    this.#podUid = podUid;
  }

  of(resource: string): ReadonlySet<string> {
    return this.#ids.get(resource) ?? new Set();
  }

  /** What an init container has used is free for the next one, until one takes it that does not end. */
  used(resource: string, deviceIds: readonly string[], byInit: boolean): void {
    const ids = new Set(this.#ids.get(resource));
    this.#ids.set(resource, ids);
    for (const id of deviceIds) {
      if (byInit) ids.add(id);
      else ids.delete(id);
    }
  }
}
