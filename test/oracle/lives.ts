import { expect, it } from 'vitest';
import { repetitions } from '../support/repetitions.ts';
import { type Choose, seeded } from '../support/seeded.ts';

/** A node that chooses what happens to it, and tells what did. */
export interface Life {
  readonly story: readonly string[];
  begin(): Promise<void>;
  /** One action and some collections. Returns contradictions. */
  live(): Promise<readonly string[]>;
  end(): Promise<void>;
}

/** `ORACLE_HISTORIES=170 ORACLE_SEED=1 npx vitest run test/oracle/log-histories.test.ts` looks for what is rare. */
const HISTORIES = Number(process.env.ORACLE_HISTORIES ?? repetitions(1, 8));
const FIRST_SEED = Number(process.env.ORACLE_SEED ?? 1);

/** Returns what happened, with the contradictions as the last lines; without one undefined. */
async function failureOf(life: Life, length: number): Promise<string | undefined> {
  try {
    await life.begin();
    for (let action = 0; action < length; action += 1) {
      const found = await life.live();
      if (found.length > 0) return [...life.story, ...found].join('\n');
    }
    return undefined;
  } finally {
    await life.end();
  }
}

/** Registers a test of each subject: no history of `length` actions contradicts what is known of it. */
export function judgeLives(
  title: string,
  subjects: readonly (readonly [name: string, lifeOf: (choose: Choose) => Life])[],
  length: number,
): void {
  it.each(subjects)(
    title,
    async (_, lifeOf) => {
      for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed += 1) {
        const failure = await failureOf(lifeOf(seeded(seed)), length);
        if (failure !== undefined) expect.fail(`seed ${seed}: ${failure}`);
      }
    },
    86_400_000,
  );
}
