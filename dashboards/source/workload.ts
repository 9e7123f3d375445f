import { by, DEVICE, WHOLE_BOARD } from '../../deploy/rules/promql.ts';
import type { Board, Variable } from './board.ts';
import { CLUSTER, HELD, HOLDER, orZero, query, withHolder, zeros } from './queries.ts';

const C = 'cluster=~"$cluster"';
const held = (name: string, label: string, matchers: string): Variable => ({
  name,
  label,
  query: `label_values(container_device_allocation{${matchers}}, \${prefix}${name})`,
});

const IN_NAMESPACE = `${C}, \${prefix}namespace=~"$namespace"`;
const IN_POD = `${IN_NAMESPACE}, \${prefix}pod=~"$pod"`;
const SELECTED = `${IN_POD}, \${prefix}container=~"$container"`;
const series = (name: string, matchers = ''): string => `${name}{${SELECTED}${matchers === '' ? '' : `, ${matchers}`}}`;
const rate = (name: string): string => `rate(${series(name)}[$__rate_interval])`;

const HELD_DEVICES = by(DEVICE, series('container_device_allocation', 'device!=""'));
const NOT_KNOWN = `${HELD_DEVICES} unless on (${DEVICE}) ${series('container_device_healthy')} or ${by('cluster, node, device_id', series('container_device_allocation', 'device=""'))}`;
const RANKS = 'rank:device_bytes:deviation{holder_namespace=~"$namespace", holder_pod=~"$pod"}';

const increase = (name: string): string => `increase(${series(name)}[$__range])`;
const ofNamespace = (expr: string): string => `sum by (holder_namespace) (${withHolder(expr, ['namespace'])})`;
/** The part of a container in the idle time of a device that several containers hold. */
const IDLE_SHARE = `${increase('container_device_idle_seconds_total')} * ${increase('container_device_share_seconds_total')} / (${increase('container_device_allocated_seconds_total')} > 0)`;

/** Labels of one device of one container, as the scrape names them. */
const ONE = 'cluster, node, device, ${prefix}namespace, ${prefix}pod, ${prefix}container';
const LEGEND = '{{node}} {{device}}';
const withPod = (expr: string, more = ''): string => by(`${DEVICE}, ${HOLDER}${more}`, withHolder(expr));
const POD_LEGEND = `{{holder_pod}} ${LEGEND}`;

export const workload: Board = {
  name: 'workload',
  title: 'Workload',
  description: 'The devices of a namespace, of a pod or of a container: what they do and how they are.',
  variables: [CLUSTER, held('namespace', 'Namespace', C), held('pod', 'Pod', IN_NAMESPACE), held('container', 'Container', IN_POD)],
  lines: [
    {
      height: 4,
      panels: [
        {
          ...{ kind: 'stat', title: 'Containers with devices', unit: 'none', width: 5 },
          description: 'Containers that hold at least one device id.',
          queries: [
            query(
              `count(count by (cluster, \${prefix}namespace, \${prefix}pod, \${prefix}container) (${series('container_device_allocation')}))`,
            ),
          ],
        },
        {
          ...{ kind: 'stat', title: 'Devices held', unit: 'none', width: 5 },
          description: 'Devices that the containers hold. A shared device counts once.',
          queries: [query(`count(${HELD_DEVICES})`)],
        },
        {
          ...{ kind: 'stat', title: 'Out of service', unit: 'none', width: 5, badFrom: 1 },
          description: 'Devices that the containers hold and that are unhealthy.',
          queries: [query(zeros(`min by (${DEVICE}) (${series('container_device_healthy')})`))],
        },
        {
          ...{ kind: 'stat', title: 'Not known', unit: 'none', width: 5, warnFrom: 1 },
          description: 'Devices that the containers hold and whose health is not known, and held ids for which the agent knows no device.',
          queries: [query(orZero(`count(${NOT_KNOWN})`, series('container_device_allocation')))],
        },
        {
          ...{ kind: 'stat', title: 'Power', unit: 'watt', width: 4 },
          description: 'Power of all boards that the containers hold.',
          queries: [query(`sum(max by (cluster, node, device) (${series('container_device_power_watts', WHOLE_BOARD)}))`)],
        },
      ],
    },
    {
      height: 9,
      panels: [
        {
          ...{ kind: 'table', title: 'Who holds what', unit: 'none', width: 14, opens: 'device' },
          description: 'Each device id that a container holds. The column device is empty where the agent knows no device for the id.',
          columns: ['holder_namespace', 'holder_pod', 'holder_container', 'node', 'device', 'resource', 'device_id', 'cluster'],
          queries: [query(withPod(series('container_device_allocation'), ', resource, device_id'))],
        },
        {
          ...{ kind: 'timeline', title: 'Allocation', unit: 'none', width: 10, texts: HELD },
          description: 'Which pod held which device when.',
          queries: [query(withPod(series('container_device_allocation', 'device!=""')), POD_LEGEND)],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Utilisation', unit: 'percentunit', width: 12, max: 1, opens: 'device' },
          description: 'How busy the busiest engine of each device is.',
          queries: [query(withPod(series('container_device_utilization_ratio')), POD_LEGEND)],
        },
        {
          ...{ kind: 'series', title: 'Memory used', unit: 'bytes', width: 12, opens: 'device' },
          description: 'Device memory in use by the container.',
          queries: [query(withPod(series('container_device_memory_used_bytes')), POD_LEGEND)],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Time since the last progress', unit: 's', width: 12 },
          description:
            'How long the GPUs of each container that holds some have shown no work. Containers that compute make it a few seconds.',
          queries: [
            query(
              by(`cluster, node, ${HOLDER}`, withHolder(`(time() - ${series('container_device_last_progress_timestamp_seconds')})`)),
              '{{node}} {{holder_pod}} {{holder_container}}',
            ),
          ],
        },
        {
          ...{ kind: 'series', title: 'Ranks that differ from their job', unit: 'none', width: 12 },
          description:
            'Bytes of each pod, as distance from the median of its job. It needs deploy/rules-stall.yaml. A minority that differs is a hint, not a proof.',
          queries: [query(orZero(`topk(20, abs(${RANKS}) > 5)`, RANKS), '{{holder_job}} {{holder_pod}}')],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'table', title: 'Device hours by namespace', unit: 'none', width: 7, value: 'device hours' },
          description: 'Device hours in the time of the board. A shared device counts for each container with its part.',
          columns: ['holder_namespace'],
          queries: [
            query(`sum by (holder_namespace) (${withHolder(increase('container_device_share_seconds_total'), ['namespace'])}) / 3600`),
          ],
        },
        {
          ...{ kind: 'series', title: 'Idle share', unit: 'percentunit', width: 8, max: 1 },
          description: 'Part of the observed time in which the devices of a namespace did nothing.',
          queries: [
            query(
              `${ofNamespace(rate('container_device_idle_seconds_total'))} / (${ofNamespace(rate('container_device_allocated_seconds_total'))} - ${ofNamespace(rate('container_device_unobserved_seconds_total'))} > 0)`,
              '{{holder_namespace}}',
            ),
          ],
        },
        {
          ...{ kind: 'table', title: 'Most idle device hours', unit: 'none', width: 9, value: 'idle device hours' },
          description: 'The twenty pods whose devices did nothing for the longest time in the time of the board.',
          columns: ['holder_namespace', 'holder_pod'],
          queries: [query(`topk(20, sum by (holder_namespace, holder_pod) (${withHolder(IDLE_SHARE, ['namespace', 'pod'])})) / 3600`)],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Received', unit: 'Bps', width: 12, opens: 'device' },
          description: 'Bytes received by each device, per second.',
          queries: [query(`sum by (${ONE}) (${rate('container_device_received_bytes_total')})`, `{{\${prefix}pod}} ${LEGEND}`)],
        },
        {
          ...{ kind: 'series', title: 'Transmitted', unit: 'Bps', width: 12, opens: 'device' },
          description: 'Bytes transmitted by each device, per second.',
          queries: [query(`sum by (${ONE}) (${rate('container_device_transmitted_bytes_total')})`, `{{\${prefix}pod}} ${LEGEND}`)],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Temperature', unit: 'celsius', width: 6, opens: 'device' },
          description: 'The hottest sensor of each device.',
          queries: [query(withPod(series('container_device_temperature_celsius')), POD_LEGEND)],
        },
        {
          ...{ kind: 'series', title: 'Power by sensor', unit: 'watt', width: 6, opens: 'device' },
          description: 'Power as each sensor measures it.',
          queries: [query(withPod(series('container_device_power_watts'), ', sensor'), `${POD_LEGEND} {{sensor}}`)],
        },
        {
          ...{ kind: 'series', title: 'Errors', unit: 'none', width: 6, opens: 'device' },
          description: 'Errors that the hardware counted while the container held the device, within the rate interval.',
          queries: [
            query(`sum by (${ONE}, kind) (increase(${series('container_device_errors_total')}[$__rate_interval]))`, `${LEGEND} {{kind}}`),
          ],
        },
        {
          ...{ kind: 'series', title: 'Throttled', unit: 'none', width: 6, opens: 'device' },
          description: '1 while the device runs slower for a reason.',
          queries: [query(withPod(series('container_device_throttled'), ', reason'), `${LEGEND} {{reason}}`)],
        },
      ],
    },
  ],
};
