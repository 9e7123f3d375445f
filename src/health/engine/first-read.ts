import type { Finding } from '../../model/health.ts';
import type { ConditionPolicy } from '../policy/policy.ts';
import { conditionKey, type DeviceMemory } from './memory.ts';
import { effectiveSeverity } from './verdict.ts';

type Previous = Pick<DeviceMemory, 'wasRead' | 'readAtMs' | 'verdict' | 'unchecked'> | undefined;

/** Whether a read told the state of the device at least once. A state file of an older version does not say it; then the verdict does. */
export function wasRead(previous: Previous): boolean {
  return previous?.wasRead ?? (previous?.readAtMs !== undefined && previous.verdict.state !== 'unknown');
}

/**
 * Fatal conditions that the family looked for and that no read could judge so far, as keys of conditions. The first read begins the list,
 * and each condition leaves it with the first read that judges it. A condition that was judged before and cannot be read now is not on it.
 */
export function uncheckedAfter(
  previous: Previous,
  findings: readonly Finding[],
  policyOf: (finding: Finding) => ConditionPolicy,
): readonly string[] {
  const before = previous?.unchecked ?? [];
  const isFirst = !wasRead(previous);
  if (!isFirst && before.length === 0) return before;
  const judged = new Set<string>();
  const unknown = new Set<string>();
  for (const finding of findings) {
    const key = conditionKey(finding);
    if (isJudged(finding)) judged.add(key);
    else if (isFirst && isFatal(finding, policyOf(finding))) unknown.add(key);
  }
  // Without an instance, a read denies the condition for all instances.
  return [...new Set([...before, ...unknown])].filter((key) => !judged.has(key) && !judged.has(key.split('/')[0] as string)).sort();
}

const isJudged = ({ status, count, level }: Finding): boolean =>
  status === undefined ? Number.isFinite(Number(count ?? level)) : status !== 'unknown';

const isFatal = (finding: Finding, policy: ConditionPolicy): boolean => policy.enabled && effectiveSeverity(finding, policy) === 'fatal';
