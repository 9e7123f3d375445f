import { describe, expect, it } from 'vitest';
import { familyLoaders } from '../../src/probes/families.ts';
import type { OracleFamily } from './family.ts';
import { describeActions, isWithKubelet, makeHistory, runHistory, shrink } from './history.ts';

/** `ORACLE_HISTORIES=10000 ORACLE_SEED=1 npx vitest run --project tests test/oracle`. */
const HISTORIES = Number(process.env.ORACLE_HISTORIES ?? 500);
const FIRST_SEED = Number(process.env.ORACLE_SEED ?? 1);
const FAMILIES = process.env.ORACLE_FAMILIES?.split(',') ?? Object.keys(familyLoaders);

describe.each(FAMILIES)('random histories of %s', (name) => {
  it(`never make a verdict better than what was seen, nor keep it worse (${HISTORIES} from seed ${FIRST_SEED})`, async () => {
    const { oracle } = (await import(`../probes/${name}/oracle.ts`)) as { readonly oracle: OracleFamily };
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
