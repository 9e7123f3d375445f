import { createPolicy } from '../health/policy/policy.ts';
import type { AgentSettings } from './settings.ts';

/** Builds the health policy from the configuration. `problems` lists the parts of the configuration that have no effect. */
export function healthPolicy(settings: AgentSettings): ReturnType<typeof createPolicy> {
  return createPolicy({
    specs: Object.fromEntries(settings.families.map(({ family }) => [family.name, family.conditions])),
    config: settings.health,
    staleAfterMs: settings.refresh['stale-after'],
    missingRetentionMs: settings.device['missing-retention'],
    readEveryMs: settings.refresh.interval,
    use: settings.usage,
  });
}
