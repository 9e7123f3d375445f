import { compareNames } from '../board/order.ts';
import { defined } from '../model/defined.ts';
import type { Answer, Labels, Curve as Series } from './answer.ts';
import type { FleetNode, FleetProblem } from './fleet.ts';
import { type Curve, type FleetDevice, type HeldDetail, type HeldDevice, type NodeDetail, SPANS, type Span } from './pages/sources.ts';
import type { Prometheus } from './prometheus.ts';
import { ofHolder, ofNode } from './questions.ts';
import { LEVELS } from './reading.ts';

const HOUR_SECONDS = 3_600;
/** About as many points as a chart has columns of pixels. */
const POINTS = 240;
const MOST_LINES = 8;
const CURVES = [
  ['Use', 'device_utilization_ratio', 'node:device_utilization_ratio:avg'],
  ['Power', 'device_power_watts', 'node:device_power_watts:sum'],
  ['Received', 'device_received_bytes', 'node:device_received_bytes:rate5m'],
  ['Transmitted', 'device_transmitted_bytes', 'node:device_transmitted_bytes:rate5m'],
] as const;

/** What Prometheus knows of one node at a time in seconds. A question that has no answer is a problem, and never rejects. */
export async function nodeDetail(prometheus: Prometheus, { name, cluster }: FleetNode, span: Span, seconds: number): Promise<NodeDetail> {
  const asked = asking();
  const at = defined({ node: name, cluster });
  const ask = (about: string, metric: string) => asked.rows(about, prometheus.query(ofNode(metric, at), seconds));
  const range = {
    start: seconds - SPANS[span] * HOUR_SECONDS,
    end: seconds,
    step: Math.max(60, Math.ceil((SPANS[span] * HOUR_SECONDS) / POINTS)),
  };
  const curve = async ([title, metric, record]: (typeof CURVES)[number]): Promise<readonly Curve[]> => {
    const rows = await asked.rows(`curve ${title.toLowerCase()}`, prometheus.queryRange(ofNode(record, at), range));
    return rows.length === 0 ? [] : [curveOf(title, metric, rows)];
  };
  const [levels, infos, uses, held, ...curves] = await Promise.all([
    ask('health of its devices', 'device:device_health_level:max'),
    ask('models of its devices', 'device:device_info:max'),
    ask('use of its devices', 'device:device_utilization_ratio:max'),
    ask('holders of its devices', 'container_device_allocation'),
    ...CURVES.map(curve),
  ]);
  const isHeldKnown = !asked.problems.some(({ question }) => question === 'holders of its devices');
  const byDevice = <Row extends { readonly labels: Labels }>(rows: readonly Row[]) =>
    new Map(rows.map((row) => [row.labels.device ?? '', row]));
  const [level, use] = [byDevice(levels), byDevice(uses)];
  const devices = infos.map(({ labels: { device: id = '', family = '', model } }): FleetDevice => {
    const holders = held.filter(({ labels }) => labels.device === id).map(({ labels }) => podOf(labels));
    return defined({
      family,
      id,
      name: id,
      model,
      state: LEVELS[level.get(id)?.value ?? 0] ?? 'unknown',
      utilizationRatio: use.get(id)?.value,
      holders: isHeldKnown ? [...new Set(holders)] : undefined,
    });
  });
  const order = (one: FleetDevice): number => -LEVELS.indexOf(one.state);
  return {
    devices: devices.toSorted((a, b) => order(a) - order(b) || compareNames(a.id, b.id)),
    curves: curves.flat(),
    problems: asked.problems,
  };
}

const HOLDER = 'cluster, node, device, namespace, exported_namespace, workload_namespace, pod, exported_pod, workload_pod';

/** Devices that a pod, or all pods of a namespace, hold now or held in the last day. */
export async function heldDetail(prometheus: Prometheus, namespace: string, pod: string | undefined, seconds: number): Promise<HeldDetail> {
  const asked = asking();
  const hours = (what: string, about: string) => {
    const series = ofHolder(`container_device_${what}_seconds_total`, namespace, pod, '[1d]');
    const expr = `sum by (${HOLDER}) (${series.map((one) => `increase(${one})`).join(' or ')}) / ${HOUR_SECONDS}`;
    return asked.rows(about, prometheus.query(expr, seconds));
  };
  const [now, share, idle, unobserved] = await Promise.all([
    asked.rows(
      'devices that it holds',
      prometheus.query(`max by (${HOLDER}) (${ofHolder('container_device_allocation', namespace, pod).join(' or ')})`, seconds),
    ),
    hours('share', 'hours that it held'),
    hours('idle', 'hours that it idled'),
    hours('unobserved', 'hours that nobody saw'),
  ]);
  const keyOf = (labels: Labels): string => [labels.cluster, labels.node, labels.device, podOf(labels)].join('\0');
  const values = (rows: typeof share) => new Map(rows.map(({ labels, value }) => [keyOf(labels), value]));
  const [held, idles, unseen] = [values(share), values(idle), values(unobserved)];
  const isNow = new Set(now.map(({ labels }) => keyOf(labels)));
  const all = new Map([...now, ...share].filter(({ labels }) => (labels.device ?? '') !== '').map(({ labels }) => [keyOf(labels), labels]));
  const rows = [...all].map(([key, labels]): HeldDevice => {
    const [heldHours, idleHours, unseenHours] = [held.get(key), idles.get(key), unseen.get(key)];
    const { cluster, node = '', device: id = '' } = labels;
    return defined({
      cluster,
      node,
      family: '',
      id,
      name: id,
      pod: podOf(labels).slice(namespace.length + 1),
      isHeld: isNow.has(key),
      heldHours,
      busyHours:
        heldHours === undefined || idleHours === undefined || unseenHours === undefined
          ? undefined
          : Math.max(0, heldHours - idleHours - unseenHours),
      idleHours,
    });
  });
  return { held: rows.toSorted((a, b) => compareNames(a.pod, b.pod) || compareNames(a.id, b.id)), problems: asked.problems };
}

const podOf = (labels: Labels): string =>
  `${labels.exported_namespace || labels.workload_namespace || labels.namespace || ''}/${labels.exported_pod || labels.workload_pod || labels.pod || ''}`;

/** Collects what was not answered. */
function asking() {
  const problems: FleetProblem[] = [];
  return {
    problems,
    async rows<Row>(question: string, answer: Promise<Answer<Row>>): Promise<readonly Row[]> {
      try {
        const { rows, warnings } = await answer;
        problems.push(...warnings.map((message) => ({ question, message })));
        return rows;
      } catch (error) {
        problems.push({ question, message: (error as Error).message });
        return [];
      }
    },
  };
}

function curveOf(title: string, metric: string, rows: readonly Series[]): Curve {
  const times = [...new Set(rows.flatMap(({ points }) => points.map(([seconds]) => seconds)))].toSorted((a, b) => a - b);
  const lines = rows.slice(0, MOST_LINES).map(({ labels, points }) => {
    const values = new Map(points);
    const finite = (value: number | undefined): number | null => (value !== undefined && Number.isFinite(value) ? value : null);
    return { name: labels.model ?? labels.family ?? '', values: times.map((seconds) => finite(values.get(seconds))) };
  });
  return { title, metric, times: times.map((seconds) => seconds * 1_000), lines };
}
