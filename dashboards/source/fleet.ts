import type { Board } from './board.ts';
import { CLUSTER, orZero, query, SILENT_AGENTS } from './queries.ts';

const C = 'cluster=~"$cluster"';
const DEVICES = `cluster:devices:count{${C}}`;
const HELD = `cluster:devices_allocated:count{${C}}`;
const IDENTITY = 'family, kind, model';

/** Reads recording rules only, so that it stays cheap with thousands of nodes. */
export const fleet: Board = {
  name: 'fleet',
  title: 'Fleet',
  description:
    'All devices of all nodes: how many, in which state, in use or idle. It needs the recording rules of the group device-fleet.',
  variables: [CLUSTER],
  lines: [
    {
      height: 4,
      panels: [
        {
          ...{ kind: 'stat', title: 'Nodes with an agent', unit: 'none', width: 3 },
          description: 'Agents that are scraped.',
          queries: [query(`sum(cluster:device_agents:count{${C}})`)],
        },
        {
          ...SILENT_AGENTS,
          queries: [query(`sum(cluster:device_agents_silent:count{${C}})`)],
        },
        {
          ...{ kind: 'stat', title: 'Devices', unit: 'none', width: 3 },
          description: 'Devices of all families. MIG instances and virtual functions are devices of their own.',
          queries: [query(`sum(${DEVICES})`)],
        },
        {
          ...{ kind: 'stat', title: 'Out of service', unit: 'none', width: 4, badFrom: 1, opens: 'health' },
          description: 'Devices whose verdict is unhealthy.',
          queries: [query(orZero(`sum(cluster:devices:count{${C}, state="unhealthy"})`, DEVICES))],
        },
        {
          ...{ kind: 'stat', title: 'Unknown', unit: 'none', width: 3, warnFrom: 1, opens: 'health' },
          description: 'Devices whose health cannot be judged now.',
          queries: [query(orZero(`sum(cluster:devices:count{${C}, state="unknown"})`, DEVICES))],
        },
        {
          ...{ kind: 'stat', title: 'Allocated', unit: 'none', width: 3 },
          description: 'Devices that at least one container holds.',
          queries: [query(orZero(`sum(${HELD})`, DEVICES))],
        },
        {
          ...{ kind: 'stat', title: 'Idle but allocated', unit: 'none', width: 4, warnFrom: 1 },
          description: 'Devices that a container holds and whose busiest engine is below 1 %.',
          queries: [query(orZero(`sum(cluster:devices_idle_allocated:count{${C}})`, HELD))],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'table', title: 'Devices by model and state', unit: 'none', width: 12 },
          description: 'How many devices of each model are in each state.',
          columns: ['family', 'kind', 'model', 'state'],
          value: 'devices',
          queries: [query(`sum by (${IDENTITY}, state) (cluster:devices:count{${C}})`)],
        },
        {
          ...{ kind: 'series', title: 'Devices by state', unit: 'none', width: 12 },
          description: 'How many devices are in each state.',
          queries: [query(`sum by (state) (cluster:devices:count{${C}})`, '{{state}}')],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Share of devices allocated', unit: 'percentunit', width: 12, max: 1 },
          description: 'Devices that a container holds, as share of all devices of the kind.',
          queries: [
            query(
              `sum by (family, kind) (cluster:devices_allocated:count{${C}}) / sum by (family, kind) (cluster:devices:count{${C}})`,
              '{{family}} {{kind}}',
            ),
          ],
        },
        {
          ...{ kind: 'series', title: 'Utilisation', unit: 'percentunit', width: 12, max: 1 },
          description: 'Mean over the devices of a model; of each device its busiest engine.',
          queries: [query(`avg by (${IDENTITY}) (cluster:device_utilization_ratio:avg{${C}})`, '{{model}} {{kind}}')],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Power', unit: 'watt', width: 8 },
          description: 'Power of all boards of a model.',
          queries: [query(`sum by (${IDENTITY}) (cluster:device_power_watts:sum{${C}})`, '{{model}} {{kind}}')],
        },
        {
          ...{ kind: 'series', title: 'Received', unit: 'Bps', width: 8 },
          description: 'Bytes received by all ports of a model, per second.',
          queries: [query(`sum by (${IDENTITY}) (cluster:device_received_bytes:rate5m{${C}})`, '{{model}} {{kind}}')],
        },
        {
          ...{ kind: 'series', title: 'Transmitted', unit: 'Bps', width: 8 },
          description: 'Bytes transmitted by all ports of a model, per second.',
          queries: [query(`sum by (${IDENTITY}) (cluster:device_transmitted_bytes:rate5m{${C}})`, '{{model}} {{kind}}')],
        },
      ],
    },
    {
      height: 9,
      panels: [
        {
          ...{ kind: 'table', title: 'Conditions', unit: 'none', width: 8, value: 'devices' },
          description: 'Which conditions hold, and on how many devices.',
          columns: ['condition', 'reason', 'severity'],
          queries: [query(`sum by (condition, reason, severity) (cluster:device_conditions:count{${C}})`)],
        },
        {
          ...{ kind: 'table', title: 'Nodes with most faulty devices', unit: 'none', width: 8, value: 'devices', opens: 'node' },
          description: 'The twenty nodes with most devices that are unhealthy or unknown.',
          columns: ['cluster', 'node'],
          queries: [query(`topk(20, sum by (cluster, node) (node:devices:count{${C}, state=~"unhealthy|unknown"}))`)],
        },
        {
          ...{ kind: 'table', title: 'Namespaces', unit: 'none', width: 8, value: 'devices' },
          description: 'How many devices of each resource the containers of a namespace hold.',
          columns: ['holder_namespace', 'resource'],
          queries: [query(`sum by (holder_namespace, resource) (namespace:devices_allocated:count{${C}})`)],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Utilisation by namespace', unit: 'percentunit', width: 12, max: 1 },
          description: 'Mean utilisation of the devices that the containers of a namespace hold.',
          queries: [query(`avg by (holder_namespace) (namespace:device_utilization_ratio:avg{${C}})`, '{{holder_namespace}}')],
        },
        {
          ...{ kind: 'series', title: 'Changes of verdicts per hour', unit: 'none', width: 12 },
          description: 'How often a device took a state within the last hour.',
          queries: [query(orZero(`sum by (state) (cluster:device_health_transitions:increase1h{${C}})`, DEVICES), '{{state}}')],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Device time', unit: 'none', width: 12 },
          description:
            'How many devices were held, were idle while held, and were free. A GPU in MIG mode counts as its instances, a physical function as its virtual functions.',
          queries: [
            query(`sum(cluster:device_allocated_seconds:rate5m{${C}})`, 'allocated'),
            query(`sum(namespace:device_idle_share_seconds:rate5m{${C}})`, 'idle while allocated'),
            query(`sum(cluster:device_unallocated_seconds:rate5m{${C}})`, 'unallocated'),
            query(`sum(cluster:device_unhealthy_seconds:rate5m{${C}})`, 'unhealthy'),
          ],
        },
        {
          ...{ kind: 'series', title: 'Waste by model', unit: 'none', width: 12 },
          description: 'How many devices of each model were held and did nothing.',
          queries: [query(`sum by (family, model) (namespace:device_idle_share_seconds:rate5m{${C}})`, '{{family}} {{model}}')],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'table', title: 'Device hours by namespace', unit: 'none', width: 8, value: 'device hours' },
          description: 'Device hours of each namespace and model in the time of the board. The rule must run once a minute.',
          columns: ['holder_namespace', 'family', 'model'],
          queries: [
            query(`sum by (holder_namespace, family, model) (sum_over_time(namespace:device_share_seconds:rate5m{${C}}[$__range])) / 60`),
          ],
        },
        {
          ...{ kind: 'series', title: 'Cost per hour by namespace', unit: 'none', width: 8 },
          description: 'Cost of the devices that a namespace holds. It needs prices: deploy/rules-cost.yaml, or rules.prices of the chart.',
          queries: [query(`sum by (holder_namespace) (namespace:device_cost_per_hour:rate5m{${C}})`, '{{holder_namespace}}')],
        },
        {
          ...{ kind: 'series', title: 'Cost of idle devices per hour', unit: 'none', width: 8 },
          description: 'The part of the cost for time in which the devices did nothing. It needs prices, too.',
          queries: [query(`sum by (holder_namespace) (namespace:device_idle_cost_per_hour:rate5m{${C}})`, '{{holder_namespace}}')],
        },
      ],
    },
  ],
};
