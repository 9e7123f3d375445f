import { createPolicy } from '../health/policy/policy.ts';
import { formatDuration } from '../model/duration.ts';
import type { AgentSettings } from './settings.ts';

/** What the health policy makes of the configuration: `problems` are the parts of it that have no effect. */
export function healthPolicy(settings: AgentSettings): ReturnType<typeof createPolicy> {
  return createPolicy({
    specs: Object.fromEntries(settings.families.map(({ family }) => [family.name, family.conditions])),
    config: { 'stale-after': formatDuration(settings.refresh['stale-after']), ...settings.health },
    missingRetentionMs: settings.device['missing-retention'],
    readEveryMs: settings.refresh.interval,
  });
}
