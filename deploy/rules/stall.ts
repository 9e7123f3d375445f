import { NAMES_IN_LINK } from './annotations.ts';
import { by, RUNBOOKS, rate, WHOLE_BOARD, withHolder } from './promql.ts';

interface Recording {
  readonly record: string;
  readonly expr: string;
}

/** The label of pods that names their job, as kube-state-metrics exports it. */
export const JOB_LABEL = 'label_batch_kubernetes_io_job_name';
const JOB = 'holder_namespace, holder_job';
const POD = 'holder_namespace, holder_pod';
const OF_POD = ['namespace', 'pod'];
const PODS_OF_JOBS = 'job:pod_info:max';

const ofPods = (expr: string): string => `sum by (${POD}) (${expr}) * on (${POD}) group_left (holder_job) ${PODS_OF_JOBS}`;

/** One value for each series of a pod. Several jobs of Prometheus that scrape the same agent give the same values, so one of them counts. */
const labelsOf = (own: string): string => `cluster, node, ${own}, ${POD}`;
const rateOf = (own: string, counter: string): string => ofPods(rate(labelsOf(own), withHolder(counter, OF_POD)));

const moved = (direction: string): string => rateOf('device, port', `container_device_${direction}_bytes_total`);

/** What the ranks of one job have alike while the job is sound. */
const QUANTITIES = ['device_bytes', 'device_power_watts', 'cpu_seconds'] as const;

const ranks: readonly Recording[] = [
  { record: 'rank:device_bytes:current', expr: `${moved('received')} + ${moved('transmitted')}` },
  {
    record: 'rank:device_power_watts:current',
    expr: ofPods(by(labelsOf('device, sensor'), withHolder(`container_device_power_watts{${WHOLE_BOARD}}`, OF_POD))),
  },
  { record: 'rank:cpu_seconds:current', expr: rateOf('container', 'container_cpu_usage_seconds_total{container!=""}') },
];

/** How far each rank is from the median of its job, in medians of that distance. Where all are alike, a fiftieth of the median is one. */
const deviations = QUANTITIES.flatMap((name): readonly Recording[] => {
  const [rank, median, distance] = [`rank:${name}:current`, `job:${name}:median`, `job:${name}:distance`];
  const apart = `(${rank} - on (${JOB}) group_left () ${median})`;
  return [
    { record: median, expr: `quantile by (${JOB}) (0.5, ${rank})` },
    { record: distance, expr: `quantile by (${JOB}) (0.5, abs${apart})` },
    {
      record: `rank:${name}:deviation`,
      expr: `${apart} / on (${JOB}) group_left () (${distance} >= ${median} / 50 or ${median} / 50 > 0)`,
    },
  ];
});

const HOLDER = `${POD}, holder_container`;

/** Rules that are chosen, not given: they need the labels of pods, and a name of the job in them. */
export const stallGroup = {
  name: 'device-stall',
  interval: '1m',
  rules: [
    {
      record: PODS_OF_JOBS,
      expr: `max by (${POD}, holder_job) (label_replace(${withHolder(`kube_pod_labels{${JOB_LABEL}!=""}`, OF_POD)}, "holder_job", "$1", "${JOB_LABEL}", "(.+)"))`,
    },
    ...ranks,
    ...deviations,
    {
      alert: 'DeviceStalled',
      expr: `max by (cluster, node, ${HOLDER}) (${withHolder('(time() - container_device_last_progress_timestamp_seconds and container_device_waiting == 1 and container_device_step_seconds)', ['namespace', 'pod', 'container'])})`,
      for: '1m',
      labels: { severity: 'info' },
      annotations: {
        summary:
          '{{ $labels.holder_namespace }}/{{ $labels.holder_pod }} on node {{ $labels.node }} has made no step for {{ $value | humanizeDuration }}.',
        description:
          'The GPUs of the container {{ $labels.holder_container }} are busy, but their engines do no work, and nothing moves over their links. Its periodic steps were seen before. Most likely its job hangs: a rank died, or a collective operation waits for one. A checkpoint that another node writes looks the same. The node cannot tell which rank is the cause; rank:device_bytes:deviation and its siblings hint at a rank that differs.',
        remedy:
          'Look at the logs of all ranks, and at the flight recorder of the communication library if there is one. Restart the job if it does not go on.',
        runbook_url: `${RUNBOOKS}/devices.md${NAMES_IN_LINK}#devicestalled`,
      },
    },
  ],
} as const;
