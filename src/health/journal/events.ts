import type { HealthEvent } from '../../model/events.ts';

/** One judgement may add more events than the ring keeps. Up to this number, no event is dropped before it is announced. */
const MAX_UNANNOUNCED = 100_000;

/**
 * The latest events, oldest first. An event enters the ring when it is judged and becomes visible when it is announced. It is written to
 * disk in between, so a crash can repeat only events that were not yet visible.
 */
export class EventRing {
  readonly #limit: number;
  #events: readonly HealthEvent[];
  #lastId: number;
  #announcedId: number;

  /** Restored events count as announced. */
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

  /** Makes events visible; returns the events that became visible. */
  announce(throughId = this.#lastId): readonly HealthEvent[] {
    const from = this.#announcedId;
    this.#announcedId = Math.max(from, Math.min(throughId, this.#lastId));
    return this.#events.filter((event) => event.id > from && event.id <= this.#announcedId);
  }

  /** Visible events with an id larger than `id`. An id above the last one comes from another boot and returns all events. */
  since(id: number): readonly HealthEvent[] {
    const after = id > this.#lastId ? 0 : id;
    return this.#events.filter((event) => event.id > after && event.id <= this.#announcedId);
  }

  /** The last `count` events, announced or not. */
  tail(count: number): readonly HealthEvent[] {
    return this.#events.slice(-count);
  }
}
