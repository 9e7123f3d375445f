import { describe, expect, it } from 'vitest';
import type { OracleFamily } from './family.ts';
import { describeActions, isWithKubelet, makeHistory, runHistory, shrink } from './history.ts';

/** `ORACLE_HISTORIES=10000 ORACLE_SEED=1 npx vitest run --project tests test/probes/fpga/oracle.test.ts`. */
const HISTORIES = Number(process.env.ORACLE_HISTORIES ?? 40);
const FIRST_SEED = Number(process.env.ORACLE_SEED ?? 1);

/** Registers the test of one family. Each family has its own test file, so that the tests run in parallel. */
export function judgeHistories(oracle: OracleFamily): void {
  describe(`random histories of ${oracle.family.name}`, () => {
    it(`never give a verdict that is better or worse than the readings (${HISTORIES} from seed ${FIRST_SEED})`, async () => {
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
