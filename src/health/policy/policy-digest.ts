import { createHash } from 'node:crypto';
import { explainPolicy } from './explain-policy.ts';
import type { HealthPolicy } from './policy.ts';

/** Twelve characters that differ when two policies judge differently. */
export function policyDigest(policy: HealthPolicy): string {
  const { unknown, staleAfterMs, missingRetentionMs, flapping, ignore } = policy;
  const rules = explainPolicy(policy).map(
    ({ family, condition, class: kind, severity, for: wait, recovery, threshold, enabled, configured }) => [
      family,
      condition,
      kind,
      severity,
      wait,
      recovery,
      threshold,
      enabled,
      configured,
    ],
  );
  const text = JSON.stringify({ unknown, staleAfterMs, missingRetentionMs, flapping, ignore, rules });
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
