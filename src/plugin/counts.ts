/** Event counts by name. A name is present only after its first event. */
export class Counts {
  readonly #counts = new Map<string, number>();

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  all(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }
}
