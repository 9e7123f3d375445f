import { by, DEVICE } from '../../deploy/rules/promql.ts';
import type { Board, Panel } from './board.ts';
import { CLUSTER, NODE, query, rate, series, UP_DOWN } from './queries.ts';

const PORT = `${DEVICE}, port`;
const LEGEND = '{{node}} {{device}}/{{port}}';
/** Shared metrics also measure other families; the info metric limits them to this one. */
const here = (expr: string): string => `${expr} and on (${PORT}) ${by(PORT, series('device_infiniband_port_info'))}`;

const counted = (title: string, unit: string, metric: string, label: string, description: string): Panel => ({
  ...{ kind: 'series', title, unit, width: 8, description, opens: 'device' },
  queries: [query(`sum by (${PORT}, ${label}) (${rate(metric)})`, `${LEGEND} {{${label}}}`)],
});

export const infiniband: Board = {
  name: 'infiniband',
  title: 'InfiniBand and RDMA',
  description:
    'Ports of InfiniBand, RoCE, iWARP, Omni-Path and EFA adapters. The bytes of a physical function do not contain those of its virtual functions.',
  variables: [CLUSTER, NODE],
  lines: [
    {
      height: 4,
      panels: [
        {
          ...{ kind: 'stat', title: 'Ports', unit: 'none', width: 6 },
          description: 'Ports of all adapters and their virtual functions.',
          queries: [query(`count(${by(PORT, series('device_infiniband_port_info'))})`)],
        },
        {
          ...{ kind: 'stat', title: 'Ports down', unit: 'none', width: 6, badFrom: 1 },
          description: 'Ports whose link is not usable.',
          queries: [query(`sum(${here(`${by(PORT, series('device_link_up'))} == bool 0`)})`)],
        },
        {
          ...{ kind: 'stat', title: 'Received', unit: 'Bps', width: 6 },
          description: 'Bytes received by all ports, per second.',
          queries: [query(`sum(${here(`sum by (${PORT}) (${rate('device_received_bytes_total')})`)})`)],
        },
        {
          ...{ kind: 'stat', title: 'Transmitted', unit: 'Bps', width: 6 },
          description: 'Bytes transmitted by all ports, per second.',
          queries: [query(`sum(${here(`sum by (${PORT}) (${rate('device_transmitted_bytes_total')})`)})`)],
        },
      ],
    },
    {
      height: 9,
      panels: [
        {
          ...{ kind: 'timeline', title: 'Links', unit: 'none', width: 12, texts: UP_DOWN, opens: 'device' },
          description: 'Whether the link of each port was usable.',
          queries: [query(here(by(PORT, series('device_link_up'))), LEGEND)],
        },
        {
          ...{ kind: 'table', title: 'Ports', unit: 'Bps', width: 12, value: 'rate', opens: 'device' },
          description: 'What each port is connected to.',
          columns: ['node', 'device', 'port', 'link_layer', 'netdev', 'rate', 'lid', 'cluster'],
          queries: [query(by(`${PORT}, link_layer, netdev, rate, lid`, series('device_infiniband_port_info')))],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Received', unit: 'Bps', width: 8, opens: 'device' },
          description: 'Bytes received by each port, per second.',
          queries: [query(here(`sum by (${PORT}) (${rate('device_received_bytes_total')})`), LEGEND)],
        },
        {
          ...{ kind: 'series', title: 'Transmitted', unit: 'Bps', width: 8, opens: 'device' },
          description: 'Bytes transmitted by each port, per second.',
          queries: [query(here(`sum by (${PORT}) (${rate('device_transmitted_bytes_total')})`), LEGEND)],
        },
        {
          ...{ kind: 'series', title: 'Load', unit: 'percentunit', width: 8, max: 1, opens: 'device' },
          description: 'The busier direction of each port, as share of its signalling rate.',
          queries: [
            query(
              here(
                `max by (${PORT}) (sum by (${PORT}) (${rate('device_received_bytes_total')}) > sum by (${PORT}) (${rate('device_transmitted_bytes_total')}) or sum by (${PORT}) (${rate('device_transmitted_bytes_total')})) / ${by(PORT, series('device_link_speed_bytes_per_second'))}`,
              ),
              LEGEND,
            ),
          ],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Errors', unit: 'ops', width: 8, opens: 'device' },
          description: 'Errors that a port counted, by kind, per second.',
          queries: [query(here(`sum by (${PORT}, kind) (${rate('device_errors_total')})`), `${LEGEND} {{kind}}`)],
        },
        {
          ...{ kind: 'series', title: 'Waiting to transmit', unit: 'ops', width: 8, opens: 'device' },
          description: 'How fast a port counts that it has data and may not send: congestion. Compare ports of one model only.',
          queries: [query(`sum by (${PORT}) (${rate('device_infiniband_transmit_wait_total')})`, LEGEND)],
        },
        counted(
          'Congestion notifications',
          'ops',
          'device_infiniband_congestion_notifications_total',
          'event',
          'RoCE congestion notification packets by what became of them, per second.',
        ),
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Packets with a congestion mark', unit: 'ops', width: 8, opens: 'device' },
          description: 'RoCE packets that a congested switch marked, per second.',
          queries: [query(`sum by (${PORT}) (${rate('device_infiniband_ecn_marked_packets_total')})`, LEGEND)],
        },
        counted(
          'RDMA requests received',
          'ops',
          'device_infiniband_received_requests_total',
          'operation',
          'RDMA requests received, by operation, per second.',
        ),
        counted(
          'Packets received by cast',
          'ops',
          'device_infiniband_received_cast_packets_total',
          'cast',
          'Unicast and multicast packets received, per second.',
        ),
      ],
    },
  ],
};
