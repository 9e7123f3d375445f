import { minutes } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';

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
