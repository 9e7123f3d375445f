import { expect, expectTypeOf, it } from 'vitest';
import { hours } from '../../../src/model/duration.ts';
import type { ConditionSpec } from '../../../src/model/health.ts';
import { declaredFinding, growthCondition, type ReasonOf, raiseGrowth } from '../../../src/probes/kit/finding.ts';

const common = { class: 'latched', severity: 'fatal', meaning: 'A part failed.', remedy: 'reset', source: 'a test' } as const;
const conditions = {
  Broken: { ...common, type: 'Broken', reasons: ['PartBroken', 'Unreadable'] },
  Hot: { ...common, type: 'Hot', reasons: ['AboveLimit', 'Unreadable'] },
  Errors: growthCondition({ type: 'Errors', ...common, growth: 0, windowMs: hours(1) }),
} as const satisfies Readonly<Record<string, ConditionSpec>>;

const judged = { status: true, message: 'part 3 is broken' } as const;

it('raises a finding with a declared reason', () => {
  expect(declaredFinding(conditions.Broken, 'PartBroken', { ...judged, instance: '3' })).toEqual({
    type: 'Broken',
    reason: 'PartBroken',
    instance: '3',
    ...judged,
  });
  expect(declaredFinding(conditions.Broken, 'Unreadable', { message: 'no level', level: false }).level).toBe(false);
});

it('raises the growth of a counter that was read', () => {
  expect(raiseGrowth(conditions.Errors, 7n, 'errors: 7', 'a')).toEqual([
    { type: 'Errors', reason: 'CounterGrows', count: 7, message: 'errors: 7', instance: 'a' },
  ]);
  expect(raiseGrowth(conditions.Errors, undefined, 'errors')).toEqual([]);
});

/** The test of types is `tsc -p test`, which fails when one of the marked lines compiles. */
it('has no reasons but those that each condition declares', () => {
  const either = conditions.Broken as typeof conditions.Broken | typeof conditions.Hot;
  const loose: ConditionSpec = conditions.Broken;
  expectTypeOf<ReasonOf<typeof conditions.Broken>>().toEqualTypeOf<'PartBroken' | 'Unreadable'>();
  expect([
    declaredFinding(either, 'Unreadable', judged),
    // @ts-expect-error: the condition declares no such reason.
    declaredFinding(conditions.Broken, 'AboveLimit', judged),
    // @ts-expect-error: only one of the two conditions declares the reason.
    declaredFinding(either, 'PartBroken', judged),
    // @ts-expect-error: a condition that is declared without `as const` has no known reasons.
    declaredFinding(loose, 'PartBroken', judged),
    // @ts-expect-error: the condition does not judge a counter.
    ...raiseGrowth(conditions.Broken, 7, 'errors: 7'),
  ]).toHaveLength(5);
});
