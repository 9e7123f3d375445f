import { defineFamily } from '../family.ts';
import { pcieMetrics } from '../pcie.ts';
import { pcieConditions } from '../pcie-health.ts';
import { access } from './access.ts';
import { conditions } from './conditions.ts';
import { metrics } from './metrics.ts';
import { options } from './options.ts';
import { isPresent } from './presence.ts';
import { AmdgpuProbe } from './probe.ts';
import { problems } from './problems.ts';
import { claimNames, resolve } from './resolve.ts';
import { simulation } from './simulation.ts';

/** The family has two kinds of devices. `gpu` is a card. `partition` is a part of a card of the MI300 class: `<address>-xcp<number>`. */
export const family = defineFamily({
  name: 'amdgpu',
  summary: 'AMD GPUs and their partitions, by the files of the driver amdgpu and of KFD',
  kinds: ['gpu', 'partition'],
  metrics: [...Object.values(metrics), ...pcieMetrics],
  conditions: [...Object.values(conditions), ...pcieConditions],
  problems,
  isPresent,
  signs: [{ vendor: '0x1002', classes: ['03', '1200'], what: 'AMD GPU' }],
  activity: { utilization: { above: 0.05 }, isForHoldersOnly: true },
  options,
  createProbe: (host, values) => new AmdgpuProbe(host, values),
  resolve,
  claimNames,
  access,
  simulation,
});
