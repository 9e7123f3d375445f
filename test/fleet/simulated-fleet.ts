import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { seededRandom } from '../support/seeded.ts';

/** Seconds between two scrapes. */
export const STEP = 60;
/** A sample that is older says nothing of now; Prometheus itself forgets it after five minutes. */
const OLD = 180;
const FORGOTTEN = 300;
const DEVICES = 4;
/** How long a pod holds a device. */
const POD_SECONDS = 5_400;

interface Span {
  readonly from: number;
  readonly until: number;
}
interface SimulatedFault extends Span {
  readonly device: number;
  readonly severity: 'fatal' | 'degraded';
}

export interface SimulatedNode {
  readonly name: string;
  readonly driver: string;
  /** The agent does not answer. */
  readonly silent: readonly Span[];
  readonly faults: readonly SimulatedFault[];
  /** Prometheus scrapes the agent as two instances. */
  readonly twice: Span;
  /** The agent answers, and reads nothing any more. */
  readonly stuck: readonly Span[];
  /** Seconds by which its clock is wrong. */
  readonly clock: number;
}

/** What holds at a moment, computed from the plan and not from a series. */
export interface Truth {
  readonly state: 'unhealthy' | 'degraded' | 'healthy' | 'not now';
  readonly hit: readonly string[];
}

const within = (spans: readonly Span[], at: number): boolean => spans.some(({ from, until }) => from <= at && at < until);

/** Nodes with random faults, silence and clocks over a time in seconds. */
export function simulatedNodes(
  count: number,
  { start, seconds, seed }: { readonly start: number; readonly seconds: number; readonly seed: number },
): readonly SimulatedNode[] {
  const random = seededRandom(seed);
  const minutes = Math.floor(seconds / STEP);
  const span = (longest: number): Span => {
    const from = start + STEP * Math.floor(random() * minutes);
    return { from, until: from + STEP * (1 + Math.floor(random() * longest)) };
  };
  const some = (chance: number, longest: number): readonly Span[] => (random() < chance ? [span(longest)] : []);
  return Array.from({ length: count }, (_, at) => ({
    name: `gpu-${at}`,
    driver: random() < 0.5 ? '580.105' : '570.86',
    silent: [...some(0.3, 30), ...some(0.2, 3)],
    stuck: some(0.1, 30),
    faults: [...some(0.3, 60), ...some(0.3, 60)].map((one) => ({
      ...one,
      device: Math.floor(random() * DEVICES),
      severity: random() < 0.5 ? ('fatal' as const) : ('degraded' as const),
    })),
    twice: random() < 0.3 ? span(30) : { from: 0, until: 0 },
    clock: random() < 0.2 ? Math.round((random() - 0.5) * 20_000) : 0,
  }));
}

const podOf = (node: SimulatedNode, device: number, at: number): string | undefined =>
  device === 3 ? undefined : `job-${node.name}-${device}-${Math.floor(at / POD_SECONDS)}`;

/** The last scrape that had an answer, at or before a moment; a scrape comes at each full minute. */
function lastScrape(node: SimulatedNode, at: number, start: number): number {
  let scrape = at - (at % STEP);
  while (scrape >= start && within(node.silent, scrape)) scrape -= STEP;
  return scrape;
}

export function truthOf(node: SimulatedNode, at: number, start: number): Truth {
  const scrape = lastScrape(node, at, start);
  const isStuck = Array.from({ length: 6 }, (_, step) => scrape - step * STEP).every((moment) => within(node.stuck, moment));
  if (scrape < start || at - scrape > OLD || isStuck) return { state: 'not now', hit: [] };
  const faults = node.faults.filter((fault) => within([fault], scrape));
  const hit = new Set(
    faults.flatMap(({ device }) => {
      const pod = podOf(node, device, scrape);
      return pod === undefined ? [] : [`training/${pod}`];
    }),
  );
  const state = faults.some(({ severity }) => severity === 'fatal') ? 'unhealthy' : faults.length > 0 ? 'degraded' : 'healthy';
  return { state, hit: [...hit].toSorted() };
}

/**
 * Whether the series can tell the truth of a moment. Stored samples have no marker of the end of a series, as a scrape writes it: for five minutes
 * Prometheus takes the last sample of what ended. An agent that reads again, or no longer, is seen by the growth of five minutes.
 */
export function isClear(node: SimulatedNode, at: number): boolean {
  const isLate = (end: number): boolean => at >= end - STEP && at < end + FORGOTTEN + STEP;
  const ends = [...node.faults, ...node.silent, node.twice].map(({ until }) => until);
  const isTurning = node.stuck.some(
    ({ from, until }) => isLate(until) || (at >= from && at < Math.min(until, from + FORGOTTEN + 2 * STEP)),
  );
  return !ends.some(isLate) && !isTurning && at % POD_SECONDS >= FORGOTTEN + STEP;
}

/** Writes the series of the agents as OpenMetrics with times, as Prometheus scraped them. */
export function writeFleet(file: string, nodes: readonly SimulatedNode[], start: number, seconds: number): void {
  writeFileSync(file, '');
  const write = (
    metric: string,
    samples: (node: SimulatedNode, at: number) => readonly (readonly [labels: string, value: number])[],
  ): void => {
    const lines = [`# TYPE ${metric} gauge\n`];
    for (const node of nodes) {
      const series = new Map<string, string>();
      for (let at = start; at <= start + seconds; at += STEP) {
        if (within(node.silent, at)) continue;
        const instances = within([node.twice], at) ? ['10.0.0.1:9835', '10.0.0.2:9835'] : ['10.0.0.1:9835'];
        for (const instance of instances)
          for (const [labels, value] of samples(node, at)) {
            const name = `${metric}{node="${node.name}",job="device-agent",instance="${instance}"${labels}}`;
            series.set(name, `${series.get(name) ?? ''}${name} ${value} ${at}\n`);
          }
      }
      lines.push(...series.values());
    }
    appendFileSync(file, lines.join(''));
  };
  const each = (of: (device: string, at: number) => readonly (readonly [string, number])[]) =>
    Array.from({ length: DEVICES }, (_, device) => of(`,device="GPU-${device}"`, device)).flat();
  write('device_agent_build_info', () => [[',version="1"', 1]]);
  write('device_agent_snapshot_timestamp_seconds', (node, at) => [
    ['', within(node.stuck, at) ? Math.max(...node.stuck.map(({ from }) => from)) + node.clock : at + node.clock],
  ]);
  write('device_info', (node) => each((device) => [[`${device},family="nvidia",kind="gpu",model="H100",driver="${node.driver}"`, 1]]));
  write('device_nvidia_info', () => each((device, index) => [[`${device},index="${index}"`, 1]]));
  write('device_utilization_ratio', () => each((device) => [[device, 0.5]]));
  write('device_health_since_timestamp_seconds', () => each((device) => [[device, start]]));
  write('device_health', (node, at) =>
    each((label, device) => {
      const faults = node.faults.filter((fault) => fault.device === device && within([fault], at));
      const state = faults.some(({ severity }) => severity === 'fatal') ? 'unhealthy' : faults.length > 0 ? 'degraded' : 'healthy';
      return ['healthy', 'degraded', 'unhealthy', 'unknown'].map((one) => [`${label},state="${one}"`, one === state ? 1 : 0]);
    }),
  );
  write('device_health_condition', (node, at) =>
    node.faults
      .filter((fault) => within([fault], at))
      .map(({ device, severity }) => [
        `,device="GPU-${device}",condition="${severity === 'fatal' ? 'GpuLost' : 'Slow'}",class="latched",reason="R",severity="${severity}",remedy="reset"`,
        1,
      ]),
  );
  write('container_device_allocation', (node, at) =>
    each((label, device) => {
      const pod = podOf(node, device, at);
      return pod === undefined ? [] : [[`${label},namespace="training",pod="${pod}",container="c",resource="nvidia.com/gpu"`, 1]];
    }),
  );
  appendFileSync(file, '# EOF\n');
}

const RULES = ['deploy/rules.yaml', 'deploy/rules-fleet.yaml'];

/** Puts the rules into a query in place of the series that they record: what the rules would record at its moment. Those over days are left out. */
export function withoutRecords(expr: string): string {
  const groups = RULES.flatMap(
    (file) => (parse(readFileSync(file, 'utf8')) as { groups: { name: string; rules: { record?: string; expr: string }[] }[] }).groups,
  ).filter(({ name }) => name === 'device-fleet' || name === 'device-fleet-page');
  const rules = new Map(
    groups.flatMap(({ rules: all }) => all.flatMap(({ record, expr: of }) => (record === undefined ? [] : [[record, of] as const]))),
  );
  let text = expr.replace(/([a-z_]+:[a-z_]+:[a-z0-9_]+)\[1d\]/, '($1)[1h:5m]');
  for (let depth = 0; depth < 8; depth += 1)
    text = text.replace(/[a-z_]+:[a-z_]+:[a-z0-9_]+/g, (name) => (rules.has(name) ? `(${rules.get(name)})` : name));
  return text;
}
