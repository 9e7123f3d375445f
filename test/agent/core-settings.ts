import { usageOptions } from '../../src/accounting/options.ts';
import type { AgentSettings } from '../../src/agent/settings.ts';
import { incidentOptions } from '../../src/incidents/options.ts';
import { podResourcesOptions } from '../../src/kubelet/options.ts';
import { defaultValues } from '../../src/model/options.ts';
import { stallOptions } from '../../src/waiting/options.ts';

/** Settings of an agent that reads only these families: no kubelet, no claims, no plugin and no state file. */
export const coreSettings = (families: AgentSettings['families'], root: string, socket: string): AgentSettings =>
  ({
    roots: { sysfs: root, procfs: root, dev: root },
    refresh: { interval: 10_000, timeout: 10_000, 'stale-after': 60_000 },
    device: { 'missing-retention': 60_000 },
    podResources: {
      ...defaultValues(podResourcesOptions),
      socket,
      checkpoint: '',
      timeout: 1_000,
      hold: 0,
      'restart-grace': 0,
      'min-interval': 0,
    },
    dra: { 'metadata-dir': '' },
    cdi: { dirs: [] },
    families,
    pools: [],
    health: {},
    expect: {},
    idle: {},
    usage: defaultValues(usageOptions),
    incidents: defaultValues(incidentOptions),
    stall: defaultValues(stallOptions),
    plugin: { options: {}, resources: [] },
    state: { file: '' },
  }) as unknown as AgentSettings;
