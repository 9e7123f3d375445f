import type { HealthEvent } from '../../model/events.ts';

/** One judgement may bring more events than the ring keeps; none of them is lost before it was announced. */
const MAX_UNANNOUNCED = 100_000;

/**
 * The youngest events, oldest first. An event is in it from the moment it was judged, and visible from the moment it was
 * announced: what nobody could see may be judged again after a crash, what somebody could see was written before.
 */
export class EventRing {
  readonly #limit: number;
  #events: readonly HealthEvent[];
  #lastId: number;
  #announcedId: number;

  /** `restored` counts as announced. */
  constructor(limit = 1_000, restored: readonly HealthEvent[] = [], lastId = 0) {
    this.#limit = limit;
    this.#events = restored.slice(-limit);
    this.#lastId = Math.max(lastId, ...this.#events.map((event) => event.id));
    this.#announcedId = this.#lastId;
  }

  get lastId(): number {
    return this.#lastId;
  }

  append(events: readonly Omit<HealthEvent, 'id'>[]): readonly HealthEvent[] {
    const numbered = events.map((event) => ({ id: ++this.#lastId, ...event }));
    if (numbered.length === 0) return numbered;
    const unannounced = Math.min(this.#lastId - this.#announcedId, MAX_UNANNOUNCED);
    this.#events = [...this.#events, ...numbered].slice(-Math.max(this.#limit, unannounced));
    return numbered;
  }

  /** Makes events visible; returns those that were not before. */
  announce(throughId = this.#lastId): readonly HealthEvent[] {
    const from = this.#announcedId;
    this.#announcedId = Math.max(from, Math.min(throughId, this.#lastId));
    return this.#events.filter((event) => event.id > from && event.id <= this.#announcedId);
  }

  /** Visible events younger than `id`. An id from another boot, larger than any here, gets all. */
  since(id: number): readonly HealthEvent[] {
    const after = id > this.#lastId ? 0 : id;
    return this.#events.filter((event) => event.id > after && event.id <= this.#announcedId);
  }

  /** The last `count`, announced or not. */
  tail(count: number): readonly HealthEvent[] {
    return this.#events.slice(-count);
  }
}
