import { expect, it } from 'vitest';
import { familyLoaders } from '../../src/probes/families.ts';
import { counterOf } from '../../src/probes/kit/log-row.ts';
import { repetitions } from '../support/repetitions.ts';
import { logHistory } from './log-histories.ts';
import { subjects } from './log-subjects.ts';

/** In CI less than a minute for all families. `ORACLE_HISTORIES=100 npx vitest run test/oracle/log-histories.test.ts` looks for what is rare. */
const HISTORIES = Number(process.env.ORACLE_HISTORIES ?? repetitions(1, 8));
const FIRST_SEED = Number(process.env.ORACLE_SEED ?? 1);

it.each(subjects.map((subject) => [subject.oracle.family.name, subject] as const))(
  'what drivers of %s print is believed, what others print is not, and what nobody read is unknown',
  async (_, subject) => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed += 1) {
      const failure = await logHistory(subject, seed);
      if (failure !== undefined) expect.fail(`seed ${seed}: ${failure}`);
    }
  },
);

/** Lines of NVIDIA's driver have histories of their own, and the captured machine of VE has cards that are not well. */
const OTHERS = ['nvidia', 've'];

it('each family whose lines are counted has histories, but two', async () => {
  const families = await Promise.all(Object.values(familyLoaders).map((load) => load()));
  const withRows = families.flatMap(({ name, logRows = [] }) =>
    logRows.some((row) => row.pci === undefined && counterOf(row) !== undefined) && !OTHERS.includes(name) ? [name] : [],
  );
  expect(subjects.map(({ oracle }) => oracle.family.name)).toEqual(expect.arrayContaining(withRows));
});
