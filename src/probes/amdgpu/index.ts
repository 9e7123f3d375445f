import { kernelLogNeed, logProblems } from '../../host/kernel-log/problems.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { ClaimName } from '../../model/claim-hardware.ts';
import type { ProblemSpec } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import { namesIn } from '../../model/known-text.ts';
import { defineFamily } from '../family.ts';
import { classProblem, fileProblems } from '../kit/device-files.ts';
import { cardProblems } from '../kit/drm/cards.ts';
import { addressOfId, idsOfClaim, idsOfGraphicsNode, idsWhere } from '../kit/ids.ts';
import { knownLine, logMetric } from '../kit/log-row.ts';
import { nodeAccess } from '../kit/node-access.ts';
import { busConditions } from '../kit/pcie/bus-conditions.ts';
import { pcieConditions } from '../kit/pcie/health.ts';
import { pcieLogRows } from '../kit/pcie/log.ts';
import { pcieMetrics } from '../kit/pcie/pcie.ts';
import { sensorProblems } from '../kit/temperature.ts';
import { conditions } from './conditions.ts';
import { bus, isPresent, options } from './discover.ts';
import { logConditions, logRows } from './log-rows.ts';
import { metrics } from './metrics.ts';
import { AmdgpuProbe } from './probe.ts';

/** Name of AMD's DRA driver. */
const DRIVER = 'gpu.amd.com';

/**
 * Resolves the ids of ROCm's device plugin and of AMD's DRA driver: PCI address in any spelling (a card, or its first partition),
 * platform device of a partition, `/dev/dri/renderD128` of generic plugins, and `gpu-<card>-<render node>` in claims.
 */
export const resolve: Resolve = ({ deviceId, claim }, devices) => {
  if (claim !== undefined) return idsOfClaim(devices, claim, claimNames);
  const nodes = idsOfGraphicsNode(deviceId, devices);
  if (nodes !== undefined) return nodes;
  const address = addressOfId(deviceId);
  const there = devices.filter(({ id, aliases }) => address !== undefined && (id === address || aliases.includes(address)));
  // With partitions, the address of a card names its first partition.
  return idsWhere(there, ({ id }) => !there.some(({ parent }) => parent === id));
};

/** The driver names cards and partitions by the numbers of their nodes. */
export function claimNames({ characterDevices = [] }: Device): readonly ClaimName[] {
  const numberOf = (pattern: RegExp): string | undefined =>
    characterDevices.map((path) => pattern.exec(path)?.[1]).find((number) => number !== undefined);
  const [card, render] = [numberOf(/\/card(\d+)$/), numberOf(/\/renderD(\d+)$/)];
  return card === undefined || render === undefined ? [] : [{ driver: DRIVER, device: `gpu-${card}-${render}` }];
}

const problems = [
  classProblem(
    'The directory of graphics devices exists but cannot be listed, so the agent knows nothing about any GPU.',
    '/sys/class/drm',
  ),
  {
    code: 'metrics-version',
    meaning: 'The driver serves gpu_metrics in a version that the agent does not decode. Values of the hardware monitor remain.',
    remedy: 'Update the agent, or report the version with the kernel and the card.',
  },
  {
    code: 'metrics-garbage',
    meaning: 'The file gpu_metrics is shorter than its header says, or has another size than its version has. Its values are missing.',
    remedy: 'Search the kernel log for amdgpu. If the card works, report the header of the file with the kernel and the card.',
  },
  {
    code: 'metrics-unit',
    meaning:
      'Firmware of an APU writes powers in watts or in milliwatts. The agent compares them with the hardware monitor, and leaves out those whose unit stays unknown.',
    remedy: 'None. The power of the hardware monitor remains, where the kernel gives it.',
  },
  ...cardProblems(
    'amdgpu',
    'The kernel hides the open files of some or all processes from the agent, or one of them has very many, so processes of graphics and their time on the engines may be unknown.',
  ),
  ...sensorProblems,
  ...fileProblems('card', 'Search the kernel log for amdgpu; a card that does not answer may need a reset.'),
  {
    code: 'topology-unreadable',
    meaning: 'The topology of KFD exists but cannot be read, so partitions, links and compute processes are unknown.',
    remedy:
      "Mount the host's /sys read-only into the agent. With EPERM, set securityContext.privileged: the kernel tells the node of a GPU only to a container that may open /dev/dri/renderD<N>.",
  },
] as const satisfies readonly ProblemSpec[];

/** The family has two kinds of devices. `gpu` is a card. `partition` is a part of a card of the MI300 class: `<address>-xcp<number>`. */
export const family = defineFamily({
  name: 'amdgpu',
  summary: 'AMD GPUs and their partitions, by the files of the driver amdgpu and of KFD',
  proven:
    'Sensors, clocks, memory and gpu_metrics 1.3 and 2.1 were checked against captured files of 13 cards and APUs and the figures that another program states for them, KFD against captured topologies of eight MI210 and of eight MI300X in partitions, fdinfo against one captured client. Other versions of gpu_metrics, xcp_metrics, RAS and the kernel’s answers during a reset follow the source of the driver: no files of an Instinct card were available but these topologies.',
  kinds: ['gpu', 'partition'],
  role: 'gpu',
  partSums: [
    {
      parent: 'AMD GPU',
      parts: 'Partitions',
      areIncluded:
        'Memory and use: yes. Power, energy, temperature, errors and links are measured for the GPU only, and a partition has none of its own.',
    },
  ],
  metrics: [...Object.values(metrics), logMetric, ...pcieMetrics],
  conditions: [...Object.values(conditions), ...Object.values(logConditions), ...busConditions, ...pcieConditions],
  problems: [...problems, ...logProblems],
  logRows,
  needs: [kernelLogNeed, { check: 'process-use', part: 'process-files', problems: ['processes-hidden'] }],
  isPresent,
  bus,
  activity: { utilization: { above: 0.05 }, isForHoldersOnly: true },
  shows: {
    gpu: ['busy', 'memory', 'power', 'temperature', { label: 'Power', metric: metrics.asleep.name, words: { 1: 'asleep' } }],
    partition: ['busy', 'memory', { label: 'Busy units', metric: metrics.computeUnitsBusy.name }],
  },
  options,
  createProbe: (host, values) => new AmdgpuProbe(host, values),
  resolve,
  claimNames,
  askedBy: 'metricssvc',
  access: (device) => nodeAccess(device),
  known: {
    files: {
      values: namesIn(`
        *_busy_percent mem_info_*_total mem_info_*_used cu_occupancy generation_id gpu_id pcie_replay_count used_memory vram_# aca_*
        *_err_count event_state gpu_vram_bad_pages properties current_compute_partition current_memory_partition
      `),
      texts: ['product_name', 'vbios_version', 'mem_info_vram_vendor', 'pci.ids'],
      binary: ['gpu_metrics', 'xcp_metrics'],
    },
    kernelPrograms: knownLine([...logRows, ...pcieLogRows]),
  },
});
