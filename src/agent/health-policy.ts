import { createPolicy } from '../health/policy/policy.ts';
import { formatDuration } from '../model/duration.ts';
import type { AgentSettings } from './settings.ts';

/** Builds the health policy from the configuration. `problems` lists the parts of the configuration that have no effect. */
export function healthPolicy(settings: AgentSettings): ReturnType<typeof createPolicy> {
  return createPolicy({
    specs: Object.fromEntries(settings.families.map(({ family }) => [family.name, family.conditions])),
    config: { 'stale-after': formatDuration(settings.refresh['stale-after']), ...settings.health },
    missingRetentionMs: settings.device['missing-retention'],
    readEveryMs: settings.refresh.interval,
    use: settings.usage,
  });
}
