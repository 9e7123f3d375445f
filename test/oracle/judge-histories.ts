import { describe, expect, it } from 'vitest';
import { repetitions } from '../support/repetitions.ts';
import { seeded } from '../support/seeded.ts';
import { type OracleFamily, PACES_MS } from './family.ts';
import { describeActions, isWithKubelet, makeHistory, runHistory, shrink } from './history.ts';

/** `ORACLE_HISTORIES=10000 ORACLE_SEED=1 npx vitest run test/probes/fpga/oracle.test.ts`. */
const HISTORIES = Number(process.env.ORACLE_HISTORIES ?? repetitions(6, 40));
const FIRST_SEED = Number(process.env.ORACLE_SEED ?? 1);

/** Chooses the pace of the sources of each history. A family has one object for each pace, because its machine is built once. */
function atAnyPace(oracle: OracleFamily): (seed: number) => { readonly paceMs: number; readonly paced: OracleFamily } {
  const all = PACES_MS.map((paceMs) => ({ paceMs, paced: oracle.atPace?.(paceMs) ?? oracle }));
  return (seed) => all[seeded(-seed)(all.length)] as (typeof all)[number];
}

/** Registers the test of one family. Each family has its own test file, so that the tests run in parallel. */
export function judgeHistories(oracle: OracleFamily): void {
  describe(`random histories of ${oracle.family.name}`, () => {
    it(`never give a verdict that is better or worse than the readings (${HISTORIES} from seed ${FIRST_SEED})`, async () => {
      const chosen = atAnyPace(oracle);
      for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed += 1) {
        const { paceMs, paced } = chosen(seed);
        const actions = makeHistory(paced, seed);
        const failure = await runHistory(paced, actions, isWithKubelet(paced, seed));
        if (failure === undefined) continue;
        const shortest = await shrink(paced, actions.slice(0, failure.after + 1), isWithKubelet(paced, seed));
        const last = await runHistory(paced, shortest, isWithKubelet(paced, seed));
        expect.fail(`seed ${seed}, pace ${paceMs} ms: ${(last ?? failure).violations.join('; ')}\n${describeActions(paced, shortest)}`);
      }
    });
  });
}
