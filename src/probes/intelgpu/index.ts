import { kernelLogNeed } from '../../host/kernel-log/problems.ts';
import { namesIn } from '../../model/known-text.ts';
import { defineFamily } from '../family.ts';
import { logLineOf } from '../kit/log-rows.ts';
import { nodeAccess } from '../kit/node-access.ts';
import { pcieConditions } from '../kit/pcie/health.ts';
import { pcieMetrics } from '../kit/pcie/pcie.ts';
import { conditions } from './conditions.ts';
import { logRows } from './log-rows.ts';
import { metrics } from './metrics.ts';
import { options } from './options.ts';
import { isPresent } from './presence.ts';
import { IntelgpuProbe } from './probe.ts';
import { problems } from './problems.ts';
import { claimNames, resolve } from './resolve.ts';

/** The family has two kinds of devices. `gpu` is a card or an integrated GPU. `vf` is a virtual function of one. */
export const family = defineFamily({
  name: 'intelgpu',
  summary: 'Intel GPUs and their virtual functions, by the files of the drivers i915 and xe, and the kernel log',
  proven:
    'Sensors, clocks, throttling and idle times were checked against captured files of two Arc cards and of two integrated GPUs and the figures that another program states for them. Virtual functions, the survivability mode, lines of the kernel log and fdinfo follow documentation and source of the drivers.',
  kinds: ['gpu', 'vf'],
  role: 'gpu',
  partKinds: ['vf'],
  metrics: [...Object.values(metrics), ...pcieMetrics],
  conditions: [...Object.values(conditions), ...pcieConditions],
  problems,
  needs: [kernelLogNeed, { check: 'process-use', part: 'process-files', problems: ['processes-hidden'] }],
  isPresent,
  signs: [{ vendor: '0x8086', classes: ['03'], what: 'Intel GPU' }],
  // The display of the host is on these GPUs, too: on integrated ones always, and on cards with a connector. Its work is no fault.
  activity: { utilization: { above: 0.05 }, isForHoldersOnly: false },
  shows: {
    gpu: ['busy', 'memory', 'power', 'temperature', { label: 'Power', metric: metrics.asleep.name, words: { 1: 'asleep' } }],
    vf: ['busy', 'memory'],
  },
  options,
  createProbe: (host, values) => new IntelgpuProbe(host, values),
  resolve,
  claimNames,
  askedBy: 'xpumd',
  access: (device) => nodeAccess(device),
  known: {
    files: {
      values: namesIn(`
        *_freq *_freq_mhz auto_link_downgrade_status exec_quantum_ms preempt_timeout_us sched_priority profile idle_residency_ms
        rc#_residency_ms lmem_total_bytes physical_vram_size_bytes vram_quota reasons reason_* throttle_reason_* status survivability_mode
      `),
      texts: ['lb_*_version'],
    },
    kernelPrograms: (record) => (logLineOf(logRows, record) === undefined ? undefined : []),
  },
});
