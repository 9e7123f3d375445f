import { kernelLogNeed, logProblems } from '../../host/kernel-log/problems.ts';
import type { Resolve } from '../../model/allocation.ts';
import { namesIn } from '../../model/known-text.ts';
import { defineFamily } from '../family.ts';
import { adapterSensorConditions, adapterSensorMetrics } from '../kit/adapter-sensors.ts';
import { addressOfId, idsWhere } from '../kit/ids.ts';
import { knownLine, logMetric } from '../kit/log-row.ts';
import { dranetNames, isClaimed, isNetworkDriver, ownAddress } from '../kit/network.ts';
import { nicLogRows } from '../kit/network-drivers.ts';
import { nodeAccess, SRIOV_VARIABLE } from '../kit/node-access.ts';
import { busConditions } from '../kit/pcie/bus-conditions.ts';
import { pcieConditions } from '../kit/pcie/health.ts';
import { pcieLogRows } from '../kit/pcie/log.ts';
import { pcieMetrics } from '../kit/pcie/pcie.ts';
import { conditions } from './conditions.ts';
import { options, problems } from './declaration.ts';
import { bus, isPresent } from './discover.ts';
import { metrics } from './metrics.ts';
import { createInfinibandProbe } from './probe.ts';

/**
 * Resolves the forms of device ids that plugins use for RDMA devices: PCI address in any case and domain width (SR-IOV), auxiliary
 * name (scalable functions), name of the RDMA device, its uverbs device with or without path, and the names of DRA drivers in
 * claims.
 * A plain number names a share of a pool, not a device.
 */
export const resolve: Resolve = ({ deviceId, claim }, devices) => {
  if (claim !== undefined && isNetworkDriver(claim.driver)) return idsWhere(devices, (device) => isClaimed(claim, device));
  const name = deviceId.trim().replace(/^\/dev\/infiniband\//, '');
  if (name === '' || /^\d+$/.test(name)) return [];
  const address = addressOfId(name);
  if (address !== undefined) return idsWhere(devices, (device) => ownAddress(device) === address);
  const lower = name.toLowerCase();
  return idsWhere(devices, (device) => [device.id, ...device.aliases].some((alias) => alias.toLowerCase() === lower));
};

export const family = defineFamily({
  name: 'infiniband',
  title: 'HCA',
  summary: 'InfiniBand, RoCE, iWARP and EFA devices: physical, virtual and scalable functions',
  kinds: ['pf', 'vf', 'sf', 'function'],
  role: 'nic',
  partKinds: ['vf', 'sf'],
  partSums: [
    {
      parent: 'Physical function of an InfiniBand or RoCE adapter (mlx5)',
      parts: 'Virtual functions',
      areIncluded:
        "Bytes and packets: no. The hardware counts them for each virtual port (Linux drivers/infiniband/hw/mlx5/mad.c: the firmware command QUERY_VPORT_COUNTER). Link errors and link state: the physical port's, seen by its physical function.",
    },
  ],
  metrics: [...Object.values(metrics), ...pcieMetrics, ...adapterSensorMetrics, logMetric],
  conditions: [...Object.values(conditions), ...busConditions, ...pcieConditions, ...adapterSensorConditions],
  problems: [...problems, ...logProblems],
  logRows: nicLogRows,
  needs: [kernelLogNeed, { check: 'character-devices', part: 'device-nodes', problems: ['nodes-hidden'] }],
  isPresent,
  bus,
  // Below 10 kB a second are the keepalives of a subnet manager and of idle connections.
  activity: { traffic: { metrics: [metrics.receivedBytes.name, metrics.transmittedBytes.name], above: 10_000 }, isForHoldersOnly: false },
  options,
  createProbe: createInfinibandProbe,
  resolve,
  claimNames: dranetNames,
  claimForms: { nodeClasses: { infiniband: 'infiniband_verbs' } },
  // The uverbs, umad, issm and connection manager nodes. RoCE ports have no issm node.
  access: (device) => nodeAccess(device, SRIOV_VARIABLE),
  known: {
    kernelPrograms: knownLine([...nicLogRows, ...pcieLogRows]),
    files: {
      values: namesIn(`
        counters/* counters_ext/* hw_counters/* statistics/* lid sm_lid lifespan dev_port hw_rev sfnum link_layer node_type phys_state
        rate state
      `),
      texts: ['board_id', 'fw_ver', 'hca_type'],
      names: ['ibdev', 'parent'],
    },
  },
});
