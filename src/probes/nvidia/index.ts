import { kernelLogNeed, kmsgLost, kmsgProblems } from '../../host/kernel-log/problems.ts';
import { ReplayedTree } from '../../host/recorded/replayed-tree.ts';
import { defineFamily } from '../family.ts';
import { pcieErrorConditions } from '../kit/pcie/health.ts';
import { conditions, logConditions } from './conditions.ts';
import { access } from './devices.ts';
import { mayHaveGpus, signs } from './hardware.ts';
import { KernelLogProbe } from './kernel-log.ts';
import { known, programs } from './known-text.ts';
import { listing } from './listing.ts';
import { metrics } from './metrics.ts';
import { options, replayOptions } from './options.ts';
import { NvidiaProbe } from './probe.ts';
import { problems } from './problems.ts';
import { progress } from './progress.ts';
import { claimNames, resolve } from './resolve.ts';

export const family = defineFamily({
  name: 'nvidia',
  summary: 'NVIDIA GPUs and MIG instances, by NVML or nvidia-smi, and the kernel log.',
  kinds: ['gpu', 'mig'],
  role: 'gpu',
  partKinds: ['mig'],
  passingKinds: ['mig'],
  partSums: [
    {
      parent: 'NVIDIA GPU',
      parts: 'MIG instances',
      areIncluded: 'Memory, power, energy, temperature and errors: yes. Add up GPUs, or instances, never both.',
    },
  ],
  listing,
  metrics: Object.values(metrics),
  conditions: [...Object.values(conditions), ...pcieErrorConditions, ...Object.values(logConditions)],
  problems: [...problems, ...kmsgProblems, kmsgLost],
  needs: [
    kernelLogNeed,
    // The driver leaves out the processes of other PID namespaces.
    { check: 'container-processes', part: 'process-ids', problems: [] },
  ],
  isPresent: mayHaveGpus,
  signs,
  activity: {
    utilization: { above: 0.05, means: { gpu: { metric: metrics.activity.name, labels: { unit: 'graphics' } } } },
    isForHoldersOnly: true,
  },
  progress,
  shows: { gpu: ['busy', 'memory', 'power', 'temperature'], mig: ['busy', 'memory'] },
  options,
  canRelease: true,
  createProbe: (host, values) => {
    // A replay must not depend on the container in which it runs.
    const visible = host.sys instanceof ReplayedTree ? undefined : process.env.NVIDIA_VISIBLE_DEVICES;
    return new KernelLogProbe(new NvidiaProbe(host, values, visible), host, host.kmsg);
  },
  resolve,
  claimNames,
  claimForms: { partNodes: /^\/dev\/nvidia-caps\/nvidia-cap\d+$/, partTypes: ['mig'] },
  programs,
  access,
  replayOptions,
  known,
});
