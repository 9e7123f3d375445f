import { defined } from '../model/defined.ts';
import type { LogFields, Logger } from './logger.ts';

/** A lasting problem. It is logged once when it begins and once when it ends, however often it is seen in between. */
export interface Trouble {
  /** Identity of the trouble. It must not contain text that changes from one report to the next. */
  readonly key: string;
  /** Log line for the begin, in the present tense. */
  readonly message: string;
  /** Log line for the end, in the past tense. It must be true however the trouble ends. */
  readonly ended: string;
  /** Fields of both lines: what the trouble is about. */
  readonly fields?: LogFields;
  /** Cause at the begin, in the present tense. The end line repeats it as `was`. */
  readonly detail?: string | undefined;
  /** What the operator can do. Only the begin line has it. */
  readonly remedy?: string | undefined;
}

export interface ChangeLog {
  /** Reports a sighting. The first one is logged as a warning; later ones are only counted. */
  begin(trouble: Trouble): void;
  /** Ends a trouble and logs its duration and the number of reports. Does nothing when it had not begun. */
  end(key: string): void;
  /** Takes all current troubles of one scope: begins the new ones and ends the missing ones. Keys are unique within their scope. */
  update(scope: string, troubles: readonly Trouble[]): void;
}

interface Open {
  readonly trouble: Trouble;
  readonly sinceMs: number;
  sightings: number;
}

/** `now` returns monotonic milliseconds. */
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
    logger.warn(message, { ...fields, ...defined({ detail, remedy }) });
  };

  const end = (key: string): void => {
    const known = open.get(key);
    if (known === undefined) return;
    open.delete(key);
    const { ended, fields, detail } = known.trouble;
    const durationSeconds = Math.round(now() - known.sinceMs) / 1_000;
    logger.info(ended, { ...fields, ...defined({ was: detail }), sightings: known.sightings, durationSeconds });
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
