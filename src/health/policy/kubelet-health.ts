import type { Verdict } from '../../model/health.ts';
import type { HealthPolicy } from './policy.ts';

/** The two health values of the kubelet's device plugin API. */
export type KubeletHealth = 'Healthy' | 'Unhealthy';

/** The rules about devices that are neither healthy nor unhealthy for certain. */
export type OfferPolicy = Pick<HealthPolicy, 'unknown' | 'unchecked'>;

/**
 * Health value for the kubelet: a degraded device stays in service, and the policy decides about an unknown one and about one of
 * which a fatal condition was never checked.
 */
export function kubeletHealth(verdict: Pick<Verdict, 'state' | 'unchecked'>, policy: OfferPolicy): KubeletHealth {
  if (verdict.unchecked !== undefined && policy.unchecked === 'unhealthy') return 'Unhealthy';
  if (verdict.state === 'unknown') return policy.unknown === 'healthy' ? 'Healthy' : 'Unhealthy';
  return verdict.state === 'unhealthy' ? 'Unhealthy' : 'Healthy';
}
