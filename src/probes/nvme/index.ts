import { kernelLogNeed } from '../../host/kernel-log/problems.ts';
import type { Resolve } from '../../model/allocation.ts';
import { namesIn } from '../../model/known-text.ts';
import { defineFamily } from '../family.ts';
import { addressOfId, idsWhere } from '../kit/ids.ts';
import { knownLine, logMetric } from '../kit/log-row.ts';
import { nodeAccess } from '../kit/node-access.ts';
import { busConditions } from '../kit/pcie/bus-conditions.ts';
import { pcieConditions } from '../kit/pcie/health.ts';
import { pcieLogRows } from '../kit/pcie/log.ts';
import { pcieMetrics } from '../kit/pcie/pcie.ts';
import { conditions } from './conditions.ts';
import { logConditions, logRows, options, problems } from './declaration.ts';
import { bus, isPresent } from './discover.ts';
import { allMetrics, metrics } from './metrics.ts';
import { NvmeProbe } from './probe.ts';
import { LOG_FIELDS } from './smart-log.ts';

/** Directories of device nodes and of the links that udev makes. */
const DIRECTORY = /^\/dev\/(?:disk\/by-(?:id|path)\/|vfio\/)?/;

/**
 * Resolves the ids that plugins use for drives: a device node, a link of udev, a name of either without its directory, and a PCI address
 * in any spelling, which names the controller. A partition of a namespace is no device. No DRA driver of drives is known.
 */
export const resolve: Resolve = ({ deviceId, claim }, devices) => {
  if (claim !== undefined) return [];
  const text = deviceId.trim();
  const name = text.replace(DIRECTORY, '').toLowerCase();
  if (name === '' || /^\d+$/.test(name)) return [];
  const address = addressOfId(name);
  return idsWhere(devices, ({ id, aliases }) => id === address || [id, ...aliases].some((known) => known.toLowerCase() === name));
};

/**
 * The family has two kinds of devices. `controller`: its id is the PCI address, or subsystem name and controller id on other transports.
 * `namespace`: its id is its unique id, or that of its controller with the number of the namespace. Controllers that only tell where other
 * controllers are (discovery) are no devices.
 */
export const family = defineFamily({
  name: 'nvme',
  title: 'NVMe',
  summary: 'NVMe controllers and namespaces, by the files of the kernel; SMART logs where the administrator allows it',
  proven:
    'Files of controllers and namespaces were checked against a captured machine with two drives, one of them with two ports, and a captured laptop, SMART logs against the printed logs of a drive in three styles. The admin command was checked against an emulated drive and the driver of the kernel.',
  kinds: ['controller', 'namespace'],
  metrics: [...allMetrics, logMetric, ...pcieMetrics],
  conditions: [...Object.values(conditions), ...Object.values(logConditions), ...busConditions, ...pcieConditions],
  problems,
  logRows,
  needs: [kernelLogNeed, { check: 'smart-log', part: 'admin-commands', problems: ['smart-refused'] }],
  isPresent,
  bus,
  activity: {
    traffic: { metrics: ['device_nvme_read_bytes_total', 'device_nvme_written_bytes_total'], above: 100_000 },
    isForHoldersOnly: false,
  },
  shows: {
    controller: [
      'temperature',
      { label: 'Wear', metric: 'device_nvme_used_life_ratio', full: 1 },
      { label: 'Written', metric: 'device_nvme_lifetime_written_bytes_total' },
      { label: 'Power', metric: metrics.asleep.name, words: { 1: 'asleep' } },
    ],
    namespace: [
      { label: 'Busy', metric: 'device_nvme_busy_seconds_total', full: 1 },
      { label: 'Read', metric: 'device_nvme_read_bytes_total' },
      { label: 'Written', metric: 'device_nvme_written_bytes_total' },
    ],
  },
  options,
  createProbe: (host, values) => new NvmeProbe(host, values),
  resolve,
  // A drive of a virtual machine needs its VFIO group, and its address in the variable that KubeVirt reads.
  access: (device) => nodeAccess(device, device.driver === 'vfio-pci' ? 'PCI_RESOURCE_{RESOURCE}' : undefined),
  known: {
    formats: ['eui', 'naa', 'nvme', 'uuid', 'nqn', 'org', 'nvmexpress', 'discovery'],
    deviceNames: [/^nvme\d{1,4}(?:c\d{1,4})?(?:n\d{1,5})?(?:p\d{1,3})?$/],
    worldwide: ['nqn.', 'eui.', 'naa.', 'nvme.', 'uuid.'],
    files: {
      values: namesIn(`
        cntlid nsid iostats ro size stat queue_count state ana_state cntrltype transport
      `),
      texts: ['firmware_rev', 'model'],
      names: ['address'],
    },
    kernelPrograms: knownLine([...logRows, ...pcieLogRows]),
    documents: { 'probe.nvme.smart-directory': { values: [...LOG_FIELDS.map(({ field }) => field), 'value'] } },
  },
});
