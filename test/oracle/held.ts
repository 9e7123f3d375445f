import { INTERVAL_MS, SLACK_MS } from './node.ts';

/** Must the condition count, must it wait, or may it do either; `may`: it may be absent, too. */
export type Told = 'counts' | 'waits' | 'counts or waits' | 'may';

export type Sure = 'yes' | 'no' | 'maybe';

/** A condition that counts after it held for a time. */
export class Held {
  readonly #forMs: number;
  #mayFromMs: number | undefined;
  #surelyFromMs: number | undefined;
  #isRaised = false;

  constructor(forMs: number) {
    this.#forMs = forMs;
  }

  look(holds: Sure, nowMs: number): Told | undefined {
    if (holds === 'no') {
      this.#mayFromMs = this.#surelyFromMs = undefined;
      this.#isRaised = false;
      return undefined;
    }
    this.#mayFromMs ??= nowMs;
    if (holds === 'maybe') {
      this.#surelyFromMs = undefined;
      this.#isRaised = false;
      return 'may';
    }
    this.#surelyFromMs ??= nowMs;
    const tolerance = this.#forMs === 0 ? 0 : INTERVAL_MS + SLACK_MS;
    if (nowMs - this.#surelyFromMs >= this.#forMs + tolerance) this.#isRaised = true;
    if (this.#isRaised) return 'counts';
    return nowMs - this.#mayFromMs < this.#forMs ? 'waits' : 'counts or waits';
  }

  get isRaised(): boolean {
    return this.#isRaised;
  }

  /** The time that it held so far may be forgotten. What counts was an event, and is remembered. */
  restarted(isForgetful: boolean): void {
    this.#surelyFromMs = undefined;
    if (!isForgetful) return;
    this.#mayFromMs = undefined;
    this.#isRaised = false;
  }
}

/** What differs from what must be said. */
export function contradictions(
  expected: ReadonlyMap<string, Told>,
  counted: ReadonlySet<string>,
  waiting: ReadonlySet<string>,
): readonly string[] {
  const isTold: Readonly<Record<Told, (type: string) => boolean>> = {
    counts: (type) => counted.has(type),
    waits: (type) => waiting.has(type),
    'counts or waits': (type) => counted.has(type) || waiting.has(type),
    may: () => true,
  };
  return [
    ...[...expected].flatMap(([type, how]) => (isTold[how](type) ? [] : [`${type} ${how}`])),
    ...[...counted, ...waiting].flatMap((type) => (expected.has(type) ? [] : [`${type} does not hold`])),
  ];
}
