import { expect, it } from 'vitest';
import { familyLoaders } from '../../src/probes/families.ts';
import { counterOf } from '../../src/probes/kit/log-row.ts';
import { judgeLives } from './lives.ts';
import { LogLife } from './log-histories.ts';
import { subjects } from './log-subjects.ts';

judgeLives(
  'what drivers of %s print is believed, what others print is not, and what nobody read is unknown',
  subjects.map((subject) => [subject.oracle.family.name, (choose) => new LogLife(subject, choose)] as const),
  24,
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
