import { minutes } from '../../model/duration.ts';
import type { ConditionSpec, Finding } from '../../model/health.ts';

type Declared = Pick<ConditionSpec, 'type' | 'reasons'>;

type Common<C extends Declared> = (C extends Declared ? (reason: C['reasons'][number]) => void : never) extends (reason: infer R) => void
  ? R & string
  : never;

/** Reasons that each condition of `C` declares. A condition that is declared without `as const` has none. */
export type ReasonOf<C extends Declared> = string extends Common<C> ? never : Common<C>;

type Judgement<F> = F extends Finding ? Omit<F, 'type' | 'reason'> : never;

/** Returns a finding of a declared condition. The compiler refuses a reason that the condition does not declare. */
export const declaredFinding = <C extends Declared>({ type }: C, reason: ReasonOf<C>, judgement: Judgement<Finding>): Finding => ({
  type,
  reason,
  ...judgement,
});

/** A condition that judges the growth of a counter. */
export interface Growing {
  readonly type: string;
  readonly reasons: readonly ['CounterGrows'];
}

/** Returns the finding of a condition that judges the growth of a counter; none when the counter was not read. */
export function raiseGrowth(condition: Growing, count: number | bigint | undefined, message: string, instance?: string): Finding[] {
  if (count === undefined) return [];
  return [declaredFinding(condition, 'CounterGrows', { message, count: Number(count), ...(instance !== undefined && { instance }) })];
}

type Growth<T extends string> = Pick<ConditionSpec, 'severity' | 'meaning' | 'remedy' | 'source'> & {
  readonly type: T;
  /** The condition holds when the counter grows by more than this within `windowMs`. */
  readonly growth: number;
  readonly windowMs: number;
};

/** Returns a condition that holds while a counter grows by more than a limit, and for ten minutes after that. */
export function growthCondition<T extends string>({ type, severity, meaning, remedy, source, growth, windowMs }: Growth<T>) {
  return {
    type,
    class: 'rate',
    severity,
    reasons: ['CounterGrows'],
    meaning,
    remedy,
    source,
    threshold: { growth, windowMs },
    recoveryMs: minutes(10),
  } as const satisfies ConditionSpec;
}
