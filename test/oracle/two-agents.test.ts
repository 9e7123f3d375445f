// Project: programs. Each history starts a dozen processes.
import { expect, it } from 'vitest';
import { repetitions } from '../support/repetitions.ts';
import { historyOfTwo } from './two-agents.ts';

/** `ORACLE_HISTORIES=200 npx vitest run test/oracle/two-agents.test.ts` looks for what is rare. */
const HISTORIES = Number(process.env.ORACLE_HISTORIES ?? repetitions(3, 5));
const FIRST_SEED = Number(process.env.ORACLE_SEED ?? 1);
const STEPS = 12;

it('two agents on one node lose nothing, freeze nothing and never end without a word, in whatever order they start, hang and end', async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed += 1) {
    const failure = await historyOfTwo(seed, STEPS);
    if (failure !== undefined) expect.fail(`seed ${seed}: ${failure}`);
  }
});
