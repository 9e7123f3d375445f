import { describe, expect, it } from 'vitest';
import type { OracleFamily } from './family.ts';
import { describeActions, isWithKubelet, makeHistory, runHistory, shrink } from './history.ts';

/** `ORACLE_HISTORIES=10000 ORACLE_SEED=1 npx vitest run --project tests test/probes/fpga/oracle.test.ts`. */
const HISTORIES = Number(process.env.ORACLE_HISTORIES ?? 170);
const FIRST_SEED = Number(process.env.ORACLE_SEED ?? 1);

/** The test of one family. Families have test files of their own, so that they run side by side. */
export function judgeHistories(oracle: OracleFamily): void {
  describe(`random histories of ${oracle.family.name}`, () => {
    it(`never make a verdict better than what was seen, nor keep it worse (${HISTORIES} from seed ${FIRST_SEED})`, async () => {
      for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed += 1) {
        const actions = makeHistory(oracle, seed);
        const failure = await runHistory(oracle, actions, isWithKubelet(oracle, seed));
        if (failure === undefined) continue;
        const shortest = await shrink(oracle, actions.slice(0, failure.after + 1), isWithKubelet(oracle, seed));
        const last = await runHistory(oracle, shortest, isWithKubelet(oracle, seed));
        expect.fail(`seed ${seed}: ${(last ?? failure).violations.join('; ')}\n${describeActions(oracle, shortest)}`);
      }
    }, 86_400_000);
  });
}
