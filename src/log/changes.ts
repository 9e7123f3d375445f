import type { LogFields, Logger } from './logger.ts';

/** Something wrong that may last: said when it begins and when it ends, however often it is seen in between. */
export interface Trouble {
  /** Identity: the same key is the same trouble. Text that changes at each sighting does not belong in it. */
  readonly key: string;
  /** The line of its begin, in the present tense. */
  readonly message: string;
  /** The line of its end, in the past tense. It holds for every way in which the trouble can end. */
  readonly ended: string;
  /** What the trouble is about. Both lines have them. */
  readonly fields?: LogFields;
  /** What was wrong at the begin, in the present tense. The line of the end quotes it as `was`. */
  readonly detail?: string | undefined;
  /** What helps while the trouble lasts. The line of the end does not have it. */
  readonly remedy?: string | undefined;
}

export interface ChangeLog {
  /** Seen now. Logged as a warning the first time, counted afterwards. */
  begin(trouble: Trouble): void;
  /** No longer there. Logged with its length and the number of sightings; nothing when it had not begun. */
  end(key: string): void;
  /** All that is wrong in one scope now: begins what is new, ends what is gone. Keys are unique within their scope. */
  update(scope: string, troubles: readonly Trouble[]): void;
}

interface Open {
  readonly trouble: Trouble;
  readonly sinceMs: number;
  sightings: number;
}

/** `now` is monotonic milliseconds. */
export function createChangeLog(logger: Logger, now: () => number = () => performance.now()): ChangeLog {
  const open = new Map<string, Open>();
  const scopes = new Map<string, ReadonlySet<string>>();

  const begin = (trouble: Trouble, key = trouble.key): void => {
    const known = open.get(key);
    if (known !== undefined) {
      known.sightings += 1;
      return;
    }
    open.set(key, { trouble, sinceMs: now(), sightings: 1 });
    const { message, fields, detail, remedy } = trouble;
    logger.warn(message, { ...fields, ...(detail === undefined ? {} : { detail }), ...(remedy === undefined ? {} : { remedy }) });
  };

  const end = (key: string): void => {
    const known = open.get(key);
    if (known === undefined) return;
    open.delete(key);
    const { ended, fields, detail } = known.trouble;
    const durationSeconds = Math.round(now() - known.sinceMs) / 1_000;
    logger.info(ended, { ...fields, ...(detail === undefined ? {} : { was: detail }), sightings: known.sightings, durationSeconds });
  };

  return {
    begin: (trouble) => begin(trouble),
    end,
    update(scope, troubles) {
      if (troubles.length === 0 && !scopes.has(scope)) return;
      const present = new Set(troubles.map((trouble) => `${scope}\u0000${trouble.key}`));
      for (const key of scopes.get(scope) ?? []) if (!present.has(key)) end(key);
      for (const trouble of troubles) begin(trouble, `${scope}\u0000${trouble.key}`);
      if (present.size > 0) scopes.set(scope, present);
      else scopes.delete(scope);
    },
  };
}
