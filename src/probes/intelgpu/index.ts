import { kernelLogNeed } from '../../host/kernel-log/problems.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { ClaimName } from '../../model/claim-hardware.ts';
import type { Device } from '../../model/device.ts';
import { namesIn } from '../../model/known-text.ts';
import { defineFamily } from '../family.ts';
import { addressOfId, idsOfClaim, idsOfGraphicsNode, idsWhere } from '../kit/ids.ts';
import { knownLine, logMetric } from '../kit/log-row.ts';
import { nodeAccess } from '../kit/node-access.ts';
import { busConditions } from '../kit/pcie/bus-conditions.ts';
import { pcieConditions } from '../kit/pcie/health.ts';
import { pcieLogRows } from '../kit/pcie/log.ts';
import { pcieMetrics } from '../kit/pcie/pcie.ts';
import { conditions } from './conditions.ts';
import { options, problems } from './declaration.ts';
import { bus, isPresent } from './discover.ts';
import { logRows } from './log-rows.ts';
import { metrics } from './metrics.ts';
import { IntelgpuProbe } from './probe.ts';

/** Intel's DRA drivers: for GPUs, and for GPUs that a virtual machine gets as a whole. */
const [DRA_DRIVER, FOR_MACHINES] = ['gpu.intel.com', 'gpu-vfio.intel.com'];

/** Resources of Intel's plugin that show all GPUs to a monitor. Their holder uses none. */
const MONITORING = /^gpu\.intel\.com\/(?:i915_|xe_)?monitoring$/;

/**
 * Resolves the ids of Intel's device plugin and DRA driver: `card0-2` is the third share of `card0`, `/dev/dri/renderD128` is for generic
 * plugins, a PCI address may have any spelling, and claims name `0000-03-00-0-0xe20b` or `card0`.
 */
export const resolve: Resolve = ({ resource, deviceId, claim }, devices) => {
  if (claim !== undefined) return idsOfClaim(devices, claim, anyClaimNames);
  if (MONITORING.test(resource)) return [];
  const address = addressOfId(deviceId);
  return idsOfGraphicsNode(deviceId, devices) ?? idsWhere(devices, ({ id }) => id === address);
};

/** The driver names a GPU by its address and PCI device id; with the option `classic` by its card. */
export function claimNames({ id, pciDevice, driver, characterDevices = [] }: Device): readonly ClaimName[] {
  const card = characterDevices.flatMap((path) => /\/(card\d+)$/.exec(path)?.[1] ?? [])[0];
  const names = [
    ...(pciDevice === undefined ? [] : [`${id.replaceAll(/[:.]/g, '-')}-${pciDevice}`]),
    ...(card === undefined ? [] : [card]),
  ];
  return names.map((name) => ({ driver: driver?.endsWith('vfio-pci') === true ? FOR_MACHINES : DRA_DRIVER, device: name }));
}

/** A claim of either driver may name a GPU. */
const anyClaimNames = (device: Device): readonly ClaimName[] =>
  claimNames(device).flatMap((name) => [DRA_DRIVER, FOR_MACHINES].map((driver) => ({ ...name, driver })));

/** The family has two kinds of devices. `gpu` is a card or an integrated GPU. `vf` is a virtual function of one. */
export const family = defineFamily({
  name: 'intelgpu',
  summary: 'Intel GPUs and their virtual functions, by the files of the drivers i915 and xe, and the kernel log',
  proven:
    'Sensors, clocks, throttling and idle times were checked against captured files of two Arc cards and of two integrated GPUs and the figures that another program states for them. Virtual functions, the survivability mode, lines of the kernel log and fdinfo follow documentation and source of the drivers.',
  kinds: ['gpu', 'vf'],
  role: 'gpu',
  partKinds: ['vf'],
  metrics: [...Object.values(metrics), logMetric, ...pcieMetrics],
  conditions: [...Object.values(conditions), ...busConditions, ...pcieConditions],
  problems,
  logRows,
  needs: [kernelLogNeed, { check: 'process-use', part: 'process-files', problems: ['processes-hidden'] }],
  isPresent,
  bus,
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
    kernelPrograms: knownLine([...logRows, ...pcieLogRows]),
  },
});
