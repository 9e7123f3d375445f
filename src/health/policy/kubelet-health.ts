import type { Verdict } from '../../model/health.ts';
import type { HealthPolicy } from './policy.ts';

/** The two words that the kubelet knows. */
export type KubeletHealth = 'Healthy' | 'Unhealthy';

/** What the kubelet is told: degraded stays in service, unknown is the policy's choice. */
export function kubeletHealth(verdict: Pick<Verdict, 'state'>, policy: Pick<HealthPolicy, 'unknown'>): KubeletHealth {
  if (verdict.state === 'unknown') return policy.unknown === 'healthy' ? 'Healthy' : 'Unhealthy';
  return verdict.state === 'unhealthy' ? 'Unhealthy' : 'Healthy';
}
