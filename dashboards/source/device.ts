import { by } from '../../deploy/rules/promql.ts';
import type { Board, Panel } from './board.ts';
import { CLUSTER, HELD, HOLDER, HOLDS, NODE, series as onNodes, query, STATE_TEXTS, stateNumber, withHolder } from './queries.ts';

const THIS = 'device="$device"';
const series = (name: string, matchers = ''): string => onNodes(name, matchers === '' ? THIS : `${THIS}, ${matchers}`);
const rate = (name: string): string => `rate(${series(name)}[$__rate_interval])`;

/** A time series of a gauge, one line for each value of the label. */
const gauge = (title: string, unit: string, metric: string, label: string, description: string): Panel => ({
  ...{ kind: 'series', title, unit, width: 8, description },
  queries: [query(by(label, series(metric)), `{{${label}}}`)],
});

const counter = (title: string, unit: string, metric: string, label: string, description: string): Panel => ({
  ...{ kind: 'series', title, unit, width: 8, description },
  queries: [query(`sum by (${label}) (${rate(metric)})`, `{{${label}}}`)],
});

export const device: Board = {
  name: 'device',
  title: 'Device',
  description:
    'One device: its conditions with remedy, its history, its holders, its readings. A panel is empty where the family does not measure it.',
  page: { title: 'Record of its latest incident', path: '/incidents/latest?device=${device:percentencode}' },
  variables: [
    CLUSTER,
    { ...NODE, isMulti: false },
    { name: 'device', label: 'Device', query: 'label_values(device_info{cluster=~"$cluster", node=~"$node"}, device)', isMulti: false },
  ],
  lines: [
    {
      height: 4,
      panels: [
        {
          ...{ kind: 'stat', title: 'Health', unit: 'none', width: 4, texts: STATE_TEXTS },
          description: 'The verdict on the device.',
          queries: [query(stateNumber(THIS))],
        },
        {
          ...{ kind: 'stat', title: 'Since', unit: 'dateTimeFromNow', width: 4 },
          description: 'When the verdict took its present state.',
          queries: [query(`max(${series('device_health_since_timestamp_seconds')}) * 1000`)],
        },
        {
          ...{ kind: 'stat', title: 'Last read', unit: 'dateTimeFromNow', width: 4 },
          description: 'When the agent last read the device.',
          queries: [query(`max(${series('device_last_read_timestamp_seconds')}) * 1000`)],
        },
        {
          ...{ kind: 'table', title: 'Identity', unit: 'none', width: 12 },
          description: 'What the device is.',
          columns: [
            'model',
            'family',
            'kind',
            'vendor',
            'driver',
            'driver_version',
            'firmware',
            'pci_address',
            'numa_node',
            'serial',
            'uuid',
            'parent',
          ],
          queries: [
            query(
              by(
                'model, family, kind, vendor, driver, driver_version, firmware, pci_address, numa_node, serial, uuid, parent',
                series('device_info'),
              ),
            ),
          ],
        },
      ],
    },
    {
      height: 7,
      panels: [
        {
          ...{ kind: 'table', title: 'Conditions', unit: 'none', width: 12 },
          description:
            'What is wrong with the device, and what to do about it. docs/health.md links the page that explains each condition.',
          columns: ['condition', 'part', 'reason', 'severity', 'class', 'remedy'],
          queries: [query(by('condition, part, reason, severity, class, remedy', series('device_health_condition')))],
        },
        {
          ...{ kind: 'table', title: 'Holders', unit: 'none', width: 12, opens: 'workload' },
          description: 'The containers that hold the device now.',
          columns: ['holder_namespace', 'holder_pod', 'holder_container', 'resource', 'cluster'],
          queries: [query(by(`cluster, resource, ${HOLDER}`, withHolder(series('container_device_allocation'))))],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'timeline', title: 'Verdict over time', unit: 'none', width: 8, texts: STATE_TEXTS },
          description: 'The state of the device over time.',
          queries: [query(stateNumber(THIS), 'health')],
        },
        {
          ...{ kind: 'timeline', title: 'Conditions over time', unit: 'none', width: 8, texts: HOLDS },
          description: 'Which condition held when.',
          queries: [query(by('condition, part', series('device_health_condition')), '{{condition}} {{part}}')],
        },
        {
          ...{ kind: 'timeline', title: 'Holders over time', unit: 'none', width: 8, texts: HELD },
          description: 'Which container held the device when.',
          queries: [
            query(
              by(HOLDER, withHolder(series('container_device_allocation'))),
              '{{holder_namespace}}/{{holder_pod}}/{{holder_container}}',
            ),
          ],
        },
      ],
    },
    {
      height: 8,
      panels: [
        { ...gauge('Utilisation', 'percentunit', 'device_utilization_ratio', 'engine', 'Share of time each engine was busy.'), max: 1 },
        {
          ...{ kind: 'series', title: 'Memory', unit: 'bytes', width: 8 },
          description: 'Memory in use and memory installed.',
          queries: [
            query(by('device', series('device_memory_used_bytes')), 'used'),
            query(by('device', series('device_memory_total_bytes')), 'installed'),
          ],
        },
        gauge('Power', 'watt', 'device_power_watts', 'sensor', 'Power as each sensor measures it.'),
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Temperature', unit: 'celsius', width: 8 },
          description: 'Temperature at each sensor, and the limits at which the device acts.',
          queries: [
            query(by('sensor', series('device_temperature_celsius')), '{{sensor}}'),
            query(by('sensor, limit', series('device_temperature_limit_celsius')), '{{sensor}} {{limit}}'),
          ],
        },
        gauge('Clocks', 'hertz', 'device_clock_hertz', 'clock', 'Present frequency of each clock.'),
        gauge('Throttled', 'none', 'device_throttled', 'reason', '1 while the device runs slower for a reason.'),
      ],
    },
    {
      height: 8,
      panels: [
        counter('Received', 'Bps', 'device_received_bytes_total', 'port', 'Bytes received by each port, per second.'),
        counter('Transmitted', 'Bps', 'device_transmitted_bytes_total', 'port', 'Bytes transmitted by each port, per second.'),
        gauge('Link up', 'none', 'device_link_up', 'port', '1 while the link of a port is usable.'),
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Drive traffic', unit: 'Bps', width: 8 },
          description: 'Bytes read from a namespace of a drive and written to it, per second.',
          queries: [
            query(by('device', rate('device_nvme_read_bytes_total')), 'read'),
            query(by('device', rate('device_nvme_written_bytes_total')), 'written'),
          ],
        },
        {
          ...{ kind: 'series', title: 'Life of a drive', unit: 'percentunit', width: 8 },
          description: 'Share of the expected life of a drive that is used, and the spare capacity that is left.',
          queries: [
            query(by('device', series('device_nvme_used_life_ratio')), 'used'),
            query(by('device', series('device_nvme_available_spare_ratio')), 'spare'),
          ],
        },
        counter(
          'Dropped packets',
          'pps',
          'device_netdev_dropped_packets_total',
          'direction',
          'Packets that a network function dropped, per second.',
        ),
      ],
    },
    {
      height: 8,
      panels: [
        counter('Errors', 'ops', 'device_errors_total', 'kind', 'Errors that the hardware counted, per second.'),
        counter('PCIe errors', 'ops', 'device_pcie_errors_total', 'kind', 'Errors of the PCIe link by kind, per second.'),
        counter(
          'Changes of the verdict',
          'ops',
          'device_health_transitions_total',
          'state',
          'How often the device took a state, per second.',
        ),
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Time of the device', unit: 'percentunit', width: 12, max: 1 },
          description: 'Parts of the time: containers held the device, it was free, it was unhealthy, and its holder was unknown.',
          queries: ['allocated', 'unallocated', 'unhealthy', 'unobserved'].map((state) =>
            query(by('device', rate(`device_${state}_seconds_total`)), state),
          ),
        },
        {
          ...{ kind: 'series', title: 'Idle while held', unit: 'percentunit', width: 12, max: 1 },
          description: 'Part of the time in which each container held the device and the device did nothing.',
          queries: [
            query(
              by(HOLDER, withHolder(rate('container_device_idle_seconds_total'))),
              '{{holder_namespace}}/{{holder_pod}}/{{holder_container}}',
            ),
          ],
        },
      ],
    },
    {
      height: 7,
      panels: [
        {
          ...{ kind: 'table', title: 'Parts', unit: 'none', width: 24, opens: 'device' },
          description: 'The MIG instances, partitions, virtual functions or namespaces of the device.',
          columns: ['device', 'kind', 'model', 'node', 'cluster'],
          queries: [query(by('cluster, node, device, kind, model', onNodes('device_info', 'parent="$device"')))],
        },
      ],
    },
  ],
};
