import { defineFamily } from '../family.ts';
import { pcieErrorMetric } from '../pcie.ts';
import { access } from './access.ts';
import { conditions } from './conditions.ts';
import { metrics } from './metrics.ts';
import { options } from './options.ts';
import { NvidiaProbe } from './probe.ts';
import { problems } from './problems.ts';
import { resolve } from './resolve.ts';
import { simulate } from './simulate.ts';

export const family = defineFamily({
  name: 'nvidia',
  summary: 'NVIDIA GPUs and MIG instances, by nvidia-smi.',
  metrics: [...metrics, pcieErrorMetric],
  conditions,
  problems,
  options,
  createProbe: (host, values) => new NvidiaProbe(host, values),
  resolve,
  access,
  simulate,
});
