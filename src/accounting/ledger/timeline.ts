import type { Value } from '../../model/metric.ts';
import { addValues, subtractValues } from '../../model/metric.ts';

/** Amounts by name, such as `idleSeconds` or `busySeconds.compute`. An amount that is not known is absent. Whole numbers stay exact. */
export type Amounts = ReadonlyMap<string, Value>;

interface Point {
  readonly atMs: number;
  readonly amounts: Amounts;
}

/**
 * How the totals of one account grew, as far as one span of time needs it. Points arrive in any order. It keeps four of them at most: the
 * two around the begin of the span, and the two around its end.
 */
export class Timeline {
  readonly #sinceMs: number;
  readonly #spanFromMs: number;
  readonly #spanToMs: number;
  #beforeFrom: Point | undefined;
  #afterFrom: Point | undefined;
  #beforeTo: Point | undefined;
  #afterTo: Point | undefined;

  /** `sinceMs`: begin of the account, at which all its totals were 0. */
  constructor(sinceMs: number, spanFromMs: number, spanToMs: number) {
    this.#sinceMs = sinceMs;
    this.#spanFromMs = spanFromMs;
    this.#spanToMs = spanToMs;
  }

  add(atMs: number, amounts: Amounts): void {
    const point = { atMs, amounts };
    // An account that began in the span had 0 at its begin.
    if (this.#sinceMs < this.#spanFromMs) {
      if (atMs <= this.#spanFromMs) this.#beforeFrom = later(this.#beforeFrom, point);
      else this.#afterFrom = earlier(this.#afterFrom, point);
    }
    if (atMs <= this.#spanToMs) this.#beforeTo = later(this.#beforeTo, point);
    else this.#afterTo = earlier(this.#afterTo, point);
  }

  /** Growth of the totals within the span. Between two points they grow evenly. Before the first point they grow from 0. */
  growth(): Amounts {
    const to = this.#at(this.#spanToMs, this.#beforeTo, this.#afterTo);
    if (this.#sinceMs >= this.#spanFromMs) return to;
    const from = this.#at(this.#spanFromMs, this.#beforeFrom, this.#afterFrom);
    // After a crash an account can go on from slightly smaller totals: time that was counted already is not taken back.
    return new Map([...to].map(([name, amount]) => [name, growth(from.get(name) ?? 0, amount)]));
  }

  #at(timeMs: number, before: Point | undefined, after: Point | undefined): Amounts {
    if (timeMs <= this.#sinceMs) return new Map();
    if (after === undefined) return before?.amounts ?? new Map();
    const startMs = before?.atMs ?? this.#sinceMs;
    const part = after.atMs <= startMs ? 1 : (timeMs - startMs) / (after.atMs - startMs);
    return new Map(
      [...after.amounts].map(([name, amount]) => {
        const start = before?.amounts.get(name) ?? 0;
        return [name, part === 1 ? addValues(start, growth(start, amount)) : Number(start) + Number(growth(start, amount)) * part];
      }),
    );
  }
}

const growth = (from: Value, to: Value): Value => (to > from ? subtractValues(to, from) : 0);
const later = (known: Point | undefined, point: Point): Point => (known === undefined || point.atMs >= known.atMs ? point : known);
const earlier = (known: Point | undefined, point: Point): Point => (known === undefined || point.atMs < known.atMs ? point : known);
