import { kernelLogNeed, logProblems } from '../../host/kernel-log/problems.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { ClaimName } from '../../model/claim-hardware.ts';
import type { Device } from '../../model/device.ts';
import { namesIn } from '../../model/known-text.ts';
import { type PageReading, shared } from '../../model/shared-metrics.ts';
import { defineFamily } from '../family.ts';
import { adapterSensorConditions, adapterSensorMetrics } from '../kit/adapter-sensors.ts';
import { addressOfId, idsWhere } from '../kit/ids.ts';
import { knownLine, logMetric } from '../kit/log-row.ts';
import { dranetNames, isClaimed, SRIOV_DRIVER, sriovName } from '../kit/network.ts';
import { nicLogRows } from '../kit/network-drivers.ts';
import { nodeAccess, SRIOV_VARIABLE } from '../kit/node-access.ts';
import { busConditions } from '../kit/pcie/bus-conditions.ts';
import { pcieConditions } from '../kit/pcie/health.ts';
import { pcieLogRows } from '../kit/pcie/log.ts';
import { pcieMetrics } from '../kit/pcie/pcie.ts';
import { conditions } from './conditions.ts';
import { options, problems } from './declaration.ts';
import { bus, isPresent } from './discover.ts';
import { allMetrics } from './metrics.ts';
import { NetdevProbe } from './probe.ts';

/**
 * Resolves a PCI address in any case and domain width, which is the id of every pool of the SR-IOV device plugin, and the names of the
 * DRA drivers `dra.net` and `sriovnetwork.k8snetworkplumbingwg.io`. The driver `cni.dra.networking.x-k8s.io` has no fixed names: its claims
 * are found by the hardware that its files name.
 */
export const resolve: Resolve = ({ deviceId, claim }, devices) => {
  if (claim !== undefined) return idsWhere(devices, (device) => isClaimed(claim, device));
  const address = addressOfId(deviceId);
  return idsWhere(devices, (device) => address !== undefined && device.pciAddress === address);
};

/** Names of a function in the slices of both drivers. The driver for SR-IOV offers virtual functions only. */
export function claimNames(device: Device): readonly ClaimName[] {
  const name = device.kind === 'vf' ? sriovName(device) : undefined;
  return [...dranetNames(device), ...(name === undefined ? [] : [{ driver: SRIOV_DRIVER, device: name }])];
}

const SHOWN: readonly PageReading[] = ['traffic', 'link', { label: 'Drops', metric: 'device_netdev_dropped_packets_total' }];

/**
 * Network functions that SR-IOV plugins hand out by PCI address. A function with an RDMA device belongs to the family `infiniband`, which
 * names its interface: one function is one device, so its bytes and its holder count once.
 */
export const family = defineFamily({
  name: 'netdev',
  title: 'NIC',
  summary: 'Network functions of SR-IOV and of DPDK: physical and virtual functions without an RDMA device',
  proven:
    'Counters and settings by the command ip were checked against the printed text of an adapter of Intel with four functions and of one of AMD. Functions, links, settings by netlink and the counters of interfaces were checked on a stock kernel with an emulated Intel 82576; its driver keeps no counters of functions, so in the answer of netlink these follow the source of the kernel. Counters in files follow the sources of the drivers.',
  kinds: ['pf', 'vf', 'function'],
  role: 'plain-nic',
  partKinds: ['vf'],
  metrics: [...allMetrics, ...pcieMetrics, ...adapterSensorMetrics, logMetric],
  conditions: [...Object.values(conditions), ...busConditions, ...pcieConditions, ...adapterSensorConditions],
  problems: [...problems, ...logProblems],
  logRows: nicLogRows,
  needs: [kernelLogNeed, { check: 'function-counters', part: 'network', problems: ['other-network-namespace'] }],
  isPresent,
  bus,
  // Below 10 kB a second are the broadcasts that a switch floods to all ports.
  activity: { traffic: { metrics: [shared.receivedBytes.name, shared.transmittedBytes.name], above: 10_000 }, isForHoldersOnly: false },
  shows: { pf: SHOWN, vf: SHOWN, function: SHOWN },
  options,
  createProbe: (host, values) => new NetdevProbe(host, values),
  resolve,
  claimNames,
  // The nodes of VFIO, when a program in user space drives the function. A CNI plugin moves the interface of another function.
  access: (device) => nodeAccess(device, SRIOV_VARIABLE),
  known: {
    kernelPrograms: knownLine([...nicLogRows, ...pcieLogRows]),
    files: {
      values: namesIn(`
        statistics/* carrier carrier_changes carrier_down_count dev_port flags ifindex mtu speed netns_mode operstate stats vf#_statistics
        stats/* vf#_statistics/* tx_timeout
      `),
      names: ['phys_port_name'],
    },
    outputs: [{ program: 'ip', lines: /^\d+: |^ +(?:link\/|vf \d|RX: |TX: |\d|bond_slave )|does not exist/ }],
  },
  // The socket would ask the kernel of the machine of the replay.
  replayOptions: ({ options }) => ({ source: options.source === 'sysfs' ? 'sysfs' : 'ip' }),
});
