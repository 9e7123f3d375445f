import { by, DEVICE, WHOLE_BOARD } from '../../deploy/rules/promql.ts';
import type { Board } from './board.ts';
import {
  ASKED,
  CLUSTER,
  HOLDER,
  inState,
  NODE,
  orZero,
  query,
  rate,
  STATE_TEXTS,
  series,
  stateNumber,
  withHolder,
  withIdentity,
} from './queries.ts';

const LEGEND = '{{node}} {{device}}';

export const node: Board = {
  name: 'node',
  title: 'Node',
  description: 'The devices of one node or of a few: health, holders, load.',
  variables: [CLUSTER, NODE],
  lines: [
    {
      height: 4,
      panels: [
        {
          ...{ kind: 'stat', title: 'Devices', unit: 'none', width: 6 },
          description: 'Devices of all families.',
          queries: [query(`count(${by(DEVICE, series('device_info'))})`)],
        },
        {
          ...{ kind: 'stat', title: 'Out of service', unit: 'none', width: 6, badFrom: 1, opens: 'health' },
          description: 'Devices whose verdict is unhealthy.',
          queries: [query(inState('unhealthy'))],
        },
        {
          ...{ kind: 'stat', title: 'Unknown', unit: 'none', width: 6, warnFrom: 1, opens: 'health' },
          description: 'Devices whose health cannot be judged now.',
          queries: [query(inState('unknown'))],
        },
        {
          ...{ kind: 'stat', title: 'Allocated', unit: 'none', width: 6 },
          description: 'Devices that at least one container holds.',
          queries: [query(orZero(`count(${by(DEVICE, series('container_device_allocation', 'device!=""'))})`, ASKED))],
        },
      ],
    },
    {
      height: 9,
      panels: [
        {
          ...{ kind: 'timeline', title: 'Health', unit: 'none', width: 24, texts: STATE_TEXTS, opens: 'device' },
          description: 'The verdict on each device over time.',
          queries: [query(stateNumber(), LEGEND)],
        },
      ],
    },
    {
      height: 9,
      panels: [
        {
          ...{ kind: 'table', title: 'Devices', unit: 'none', width: 12, opens: 'device' },
          description: 'Each device with its identity and its state.',
          columns: ['node', 'device', 'state', 'family', 'kind', 'model', 'cluster'],
          queries: [query(withIdentity(by(`${DEVICE}, state`, `${series('device_health')} == 1`), 'family, kind, model'))],
        },
        {
          ...{ kind: 'table', title: 'Holders', unit: 'none', width: 12, opens: 'device' },
          description: 'Which container holds which device.',
          columns: ['node', 'device', 'holder_namespace', 'holder_pod', 'holder_container', 'resource', 'cluster'],
          queries: [query(by(`${DEVICE}, resource, ${HOLDER}`, withHolder(series('container_device_allocation', 'device!=""'))))],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Utilisation', unit: 'percentunit', width: 8, max: 1, opens: 'device' },
          description: 'How busy the busiest engine of each device is.',
          queries: [query(by(DEVICE, series('device_utilization_ratio')), LEGEND)],
        },
        {
          ...{ kind: 'series', title: 'Memory', unit: 'percentunit', width: 8, max: 1, opens: 'device' },
          description: 'Memory in use, as share of the memory of the device.',
          queries: [
            query(`${by(DEVICE, series('device_memory_used_bytes'))} / ${by(DEVICE, series('device_memory_total_bytes'))}`, LEGEND),
          ],
        },
        {
          ...{ kind: 'series', title: 'Power', unit: 'watt', width: 8, opens: 'device' },
          description: 'Power of each board.',
          queries: [query(by(DEVICE, series('device_power_watts', WHOLE_BOARD)), LEGEND)],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Temperature', unit: 'celsius', width: 8, opens: 'device' },
          description: 'The hottest sensor of each device.',
          queries: [query(by(DEVICE, series('device_temperature_celsius')), LEGEND)],
        },
        {
          ...{ kind: 'series', title: 'Received', unit: 'Bps', width: 8, opens: 'device' },
          description: 'Bytes received by all ports of a device, per second.',
          queries: [query(`sum by (${DEVICE}) (${rate('device_received_bytes_total')})`, LEGEND)],
        },
        {
          ...{ kind: 'series', title: 'Transmitted', unit: 'Bps', width: 8, opens: 'device' },
          description: 'Bytes transmitted by all ports of a device, per second.',
          queries: [query(`sum by (${DEVICE}) (${rate('device_transmitted_bytes_total')})`, LEGEND)],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Drive traffic', unit: 'Bps', width: 8, opens: 'device' },
          description: 'Bytes read from each namespace of a drive and written to it, per second.',
          queries: [
            query(by(DEVICE, rate('device_nvme_read_bytes_total')), `${LEGEND} read`),
            query(by(DEVICE, rate('device_nvme_written_bytes_total')), `${LEGEND} written`),
          ],
        },
        {
          ...{ kind: 'series', title: 'Used life of drives', unit: 'percentunit', width: 8, opens: 'device' },
          description: 'Share of the expected life of each drive that is used. SMART logs are off by default.',
          queries: [query(by(DEVICE, series('device_nvme_used_life_ratio')), LEGEND)],
        },
        {
          ...{ kind: 'series', title: 'Dropped packets', unit: 'pps', width: 8, opens: 'device' },
          description: 'Packets that each network function dropped, per second. It also drops what the network floods to its port.',
          queries: [query(`sum by (${DEVICE}) (${rate('device_netdev_dropped_packets_total')})`, LEGEND)],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Errors', unit: 'none', width: 8, opens: 'device' },
          description: 'Errors that the hardware counted, by device and kind, within the rate interval.',
          queries: [query(`sum by (${DEVICE}, kind) (increase(${series('device_errors_total')}[$__rate_interval]))`, `${LEGEND} {{kind}}`)],
        },
        {
          ...{ kind: 'series', title: 'PCIe errors', unit: 'none', width: 8, opens: 'device' },
          description: 'Errors of the PCIe link by severity, within the rate interval.',
          queries: [
            query(
              `sum by (${DEVICE}, severity) (increase(${series('device_pcie_errors_total')}[$__rate_interval]))`,
              `${LEGEND} {{severity}}`,
            ),
          ],
        },
        {
          ...{ kind: 'series', title: 'Resources of the kubelet', unit: 'none', width: 8 },
          description: 'Device ids that the kubelet can allocate, and those that containers hold.',
          queries: [
            query(by('cluster, node, resource', series('device_agent_kubelet_allocatable_devices')), '{{node}} {{resource}} allocatable'),
            query(by('cluster, node, resource', series('device_agent_kubelet_allocated_devices')), '{{node}} {{resource}} allocated'),
          ],
        },
      ],
    },
  ],
};
