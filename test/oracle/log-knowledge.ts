/** A record of the log: what it says of one device, if it says anything. */
export interface LoggedRecord {
  readonly seq: number;
  /** The device by its place in the list of printers. */
  readonly device?: number;
  readonly what?: 'begins' | 'ends' | 'counts';
}

/** What the log tells of one device: the condition holds, does not hold, or nobody knows. */
export type Told = boolean | undefined;

/** A killed agent may not have written what is no event. */
const WRITTEN_MS = 45_000;

/**
 * What an agent must say that reads the log from the oldest record on. A condition holds from the line that begins it to the line that
 * ends it. Where records are missing, what began may have ended and what ended may have begun, and only the first one must be said. Without a line a log
 * from the first record of the boot denies it. This model does not depend on the implementation of the agent.
 */
export class LogKnowledge {
  /** Numbers of the counted lines of this boot that a reader got. */
  readonly #counted = new Set<number>();
  /** Records that this reader got. */
  #read: LoggedRecord[] = [];
  #told: Told;
  /** The agent must say that the condition holds. */
  isRaised = false;
  /** No read could judge it so far. Undefined before the first read, or when a kill may have lost it. */
  isUnchecked: boolean | undefined;
  #changedMs = Number.NEGATIVE_INFINITY;
  #hasRead = false;
  readonly #device: number;

  constructor(device: number) {
    this.#device = device;
  }

  /** The number of counted lines that this reader got, and that any reader of this boot got. The agent may remember those of earlier runs. */
  get counts(): { readonly least: number; readonly most: number } {
    const own = this.#read.filter(({ device, what }) => device === this.#device && what === 'counts');
    for (const { seq } of own) this.#counted.add(seq);
    return { least: own.length, most: this.#counted.size };
  }

  /** One collection. `log`: the records that are there; undefined when it cannot be read. */
  look(log: readonly LoggedRecord[] | undefined, nowMs: number): void {
    if (log !== undefined) this.#read = [...this.#read, ...log.filter(({ seq }) => seq > (this.#read.at(-1)?.seq ?? -1))];
    this.#told = this.#toldNow();
    const says = log === undefined && this.#told === false ? undefined : this.#told;
    if (says !== undefined) this.isRaised = says;
    const isUnchecked = says === undefined && (this.#hasRead ? this.isUnchecked : true);
    if (isUnchecked !== this.isUnchecked) this.#changedMs = nowMs;
    this.isUnchecked = isUnchecked;
    this.#hasRead = true;
  }

  #toldNow(): Told {
    let told: Told = this.#read[0]?.seq === 0 ? false : undefined;
    for (const [at, { seq, device, what }] of this.#read.entries()) {
      const before = this.#read[at - 1];
      if (before !== undefined && seq !== before.seq + 1 && told === false) told = undefined;
      if (device === this.#device && what === 'begins') told = true;
      if (device === this.#device && what === 'ends') told = false;
    }
    return told;
  }

  /** Another reader begins with the oldest record that is left. */
  readAnew(): void {
    this.#read = [];
  }

  killed(nowMs: number): void {
    this.readAnew();
    // An agent that lost that it never checked looks for the first time again, with the same result.
    if (this.isUnchecked === false && nowMs - this.#changedMs < WRITTEN_MS) this.isUnchecked = undefined;
  }

  /** Another boot, or a state that is lost. */
  forgotten(isBoot: boolean): void {
    if (isBoot) this.#counted.clear();
    this.isRaised = false;
    this.isUnchecked = undefined;
    this.#hasRead = false;
  }
}
