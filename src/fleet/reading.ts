import type { DisplayState } from '../board/device-view.ts';
import { compareNames } from '../board/order.ts';
import { defined } from '../model/defined.ts';
import { grouped } from '../model/grouped.ts';
import type { Remedy, Severity } from '../model/health.ts';
import type { Answer, Labels, Sample } from './answer.ts';
import type { Fleet, FleetNode, FleetProblem, ModelCapacity, NamespaceUse, NodeFault, NodeState, Outlier } from './fleet.ts';
import { groupedFaults } from './grouped-faults.ts';
import type { QuestionName } from './questions.ts';

/** An answer for each question that has one. */
export type Answers = Readonly<Partial<Record<QuestionName, Answer<Sample>>>>;

/** A sample of an agent that is older does not say how its node is now. */
const OLD_SECONDS = 180;
/** States by the level that the rules record. */
export const LEVELS: readonly DisplayState[] = ['unknown', 'healthy', 'degraded', 'unhealthy'];
const WORST_FIRST: readonly NodeState[] = ['unhealthy', 'missing', 'degraded', 'silent', 'old', 'unknown', 'healthy'];
const SEVERITIES: readonly Severity[] = ['fatal', 'degraded', 'info'];

/** What Prometheus's answers say of the fleet at a time in seconds. Rows are by node: two instances of one node are one node already. */
export function fleetOf(answers: Answers, seconds: number, problems: readonly FleetProblem[]): Fleet {
  const rows = (name: QuestionName): readonly Sample[] => answers[name]?.rows ?? [];
  const byNode = (name: QuestionName): ReadonlyMap<string, readonly Sample[]> => grouped(rows(name), ({ labels }) => keyOf(labels));
  const tables = Object.fromEntries(TABLES.map((name) => [name, byNode(name)])) as Tables;
  const groups = new Map(rows('groups').flatMap(({ labels }) => groupOf(labels)));
  const keys = new Set([...tables.heard.keys(), ...tables.wasHeard.keys()]);
  const nodes = [...keys]
    .map((key) =>
      nodeOf(key, tables, {
        seconds,
        isHeardRead: answers.heard !== undefined,
        isRead: answers.levels !== undefined,
        group: groups.get(key) ?? groups.get(`\0${key.split('\0')[1]}`),
      }),
    )
    .toSorted(
      (a, b) =>
        rank(a) - rank(b) ||
        b.faults.length - a.faults.length ||
        firstSince(a).localeCompare(firstSince(b)) ||
        compareNames(a.name, b.name),
    );
  const unnamed = rows('heard').filter(({ labels }) => labels.node === undefined).length;
  return {
    at: isoOf(seconds),
    nodes,
    faults: groupedFaults(nodes),
    capacity: capacityOf(nodes, tables, rows('waiting')),
    namespaces: namespacesOf(rows),
    outliers: outliersOf(rows('outliers'), rows('medians')),
    problems:
      unnamed === 0
        ? problems
        : [
            ...problems,
            { question: 'agents that answer', message: 'Agents have no label "node": docs/prometheus.md has the scrape configuration.' },
          ],
  };
}

const TABLES = ['heard', 'wasHeard', 'reads', 'levels', 'heldLevels', 'devices', 'use', 'faults', 'hit', 'namespaces', 'pages'] as const;
type Tables = Readonly<Record<(typeof TABLES)[number], ReadonlyMap<string, readonly Sample[]>>>;

const keyOf = ({ cluster = '', node = '' }: Labels): string => `${cluster}\0${node}`;
const isoOf = (seconds: number): string => new Date(Math.round(seconds * 1_000)).toISOString();
const rank = ({ state }: FleetNode): number => WORST_FIRST.indexOf(state);
/** Among equal nodes, the one with the oldest fault comes first. */
const firstSince = ({ faults: [first] }: FleetNode): string => first?.since ?? '~';
const sumOf = (samples: readonly Sample[]): number => samples.reduce((sum, { value }) => sum + value, 0);

interface Moment {
  readonly seconds: number;
  /** Whether the question about agents that answer has an answer. */
  readonly isHeardRead: boolean;
  /** Whether the question about health has an answer. */
  readonly isRead: boolean;
  readonly group: string | undefined;
}

function nodeOf(key: string, tables: Tables, { seconds, isHeardRead, isRead, group }: Moment): FleetNode {
  const [cluster = '', name = ''] = key.split('\0');
  const of = (table: keyof Tables): readonly Sample[] => tables[table].get(key) ?? [];
  const answer = answerOf(isHeardRead ? of('heard') : undefined, of('reads'), seconds);
  const heardAt = Math.max(
    ...[...of('heard'), ...of('wasHeard')].map(({ value }) => value).filter((value) => value <= seconds + OLD_SECONDS),
  );
  const all = of('devices');
  const total = sumOf(all);
  const common = {
    name,
    group,
    ...(cluster !== '' && { cluster }),
    families: [...new Set(all.flatMap(({ labels }) => labels.family ?? []))].toSorted(),
    models: [...new Set(all.flatMap(({ labels }) => labels.model ?? []))].filter((model) => model !== '').toSorted(),
    pageUrl: of('pages')[0]?.labels.url,
    namespaces: of('namespaces').flatMap(({ labels }) => labels.holder_namespace ?? []),
  };
  if (answer !== 'now') {
    const seenAt = Number.isFinite(heardAt) ? isoOf(heardAt) : undefined;
    return defined({ ...common, namespaces: [], state: answer, seenAt, devices: total === 0 ? {} : { unknown: total }, faults: [] });
  }
  const devices: Partial<Record<DisplayState, number>> = {};
  for (const { labels, value } of of('levels')) {
    const level = LEVELS[Number(labels.level)] ?? 'unknown';
    devices[level] = (devices[level] ?? 0) + value;
  }
  const faults = faultsOf(of('faults'), of('hit'));
  const use = of('use').filter(({ value }) => Number.isFinite(value));
  return defined({
    ...common,
    state: stateOf(devices, faults, isRead && (total === 0 || of('levels').length > 0)),
    devices,
    held: isRead ? sumOf(of('heldLevels')) : undefined,
    utilizationRatio: use.length === 0 ? undefined : sumOf(use) / use.length,
    faults,
  });
}

/** `old`: there are samples, but none new enough, or the agent reads nothing any more. The times are those of Prometheus, not of the node's clock. */
function answerOf(heard: readonly Sample[] | undefined, reads: readonly Sample[], seconds: number): 'now' | 'old' | 'silent' {
  // Prometheus did not say which agents answer: that is no silence of theirs.
  if (heard === undefined) return 'old';
  if (heard.length === 0) return 'silent';
  const isNew = heard.some(({ value }) => seconds - value <= OLD_SECONDS);
  const isReading = reads.some(({ value }) => value > 0);
  return isNew && isReading ? 'now' : 'old';
}

function stateOf(devices: FleetNode['devices'], faults: readonly NodeFault[], isRead: boolean): DisplayState {
  if ((devices.unhealthy ?? 0) > 0 || faults.some(({ severity }) => severity === 'fatal')) return 'unhealthy';
  if ((devices.degraded ?? 0) > 0 || faults.length > 0) return 'degraded';
  return isRead && (devices.unknown ?? 0) === 0 ? 'healthy' : 'unknown';
}

function faultsOf(samples: readonly Sample[], hit: readonly Sample[]): readonly NodeFault[] {
  const holders = grouped(hit, ({ labels }) => labels.device ?? '');
  return samples
    .map(({ labels, value }): NodeFault => {
      const { device = '', index, family = '', condition = '', reason = '', part, severity } = labels;
      return defined({
        family,
        device,
        name: index === undefined ? device : `GPU ${index}`,
        model: labels.model,
        driver: labels.driver,
        firmware: labels.firmware,
        condition,
        part,
        reason,
        // Another word is of a newer agent: it is not taken for less than it can be.
        severity: SEVERITIES.find((one) => one === severity) ?? 'fatal',
        remedy: labels.remedy as Remedy | undefined,
        since: value > 0 ? isoOf(value) : undefined,
        hit: [
          ...new Set((holders.get(device) ?? []).map((one) => `${one.labels.holder_namespace ?? ''}/${one.labels.holder_pod ?? ''}`)),
        ].toSorted(),
      });
    })
    .toSorted((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) || (a.since ?? '').localeCompare(b.since ?? ''));
}

function groupOf(labels: Labels): readonly (readonly [string, string])[] {
  const [group] = Object.entries(labels).flatMap(([name, value]) => (name.startsWith('label_') ? [value] : []));
  return group === undefined ? [] : [[keyOf(labels), group]];
}

/** Each device counts once: held, free, out of service or not known. */
function capacityOf(
  nodes: readonly FleetNode[],
  { levels, heldLevels, devices }: Tables,
  waiting: readonly Sample[],
): readonly ModelCapacity[] {
  const found = new Map<
    string,
    { family: string; kind: string; model: string; devices: number; held: number; free: number; outOfService: number; unknown: number }
  >();
  const lineOf = ({ family = '', kind = '', model = '' }: Labels) => {
    const key = [family, kind, model].join('\0');
    const line = found.get(key) ?? { family, kind, model, devices: 0, held: 0, free: 0, outOfService: 0, unknown: 0 };
    found.set(key, line);
    return line;
  };
  for (const { name, cluster, state } of nodes) {
    const key = keyOf(defined({ cluster, node: name }));
    if (state === 'silent' || state === 'old') {
      for (const { labels, value } of devices.get(key) ?? []) {
        const line = lineOf(labels);
        line.devices += value;
        line.unknown += value;
      }
      continue;
    }
    for (const { labels, value } of levels.get(key) ?? []) {
      const line = lineOf(labels);
      line.devices += value;
      line[labels.level === '3' ? 'outOfService' : labels.level === '1' || labels.level === '2' ? 'free' : 'unknown'] += value;
    }
    for (const { labels, value } of heldLevels.get(key) ?? []) {
      if (labels.level !== '1' && labels.level !== '2') continue;
      const line = lineOf(labels);
      line.held += value;
      line.free -= value;
    }
  }
  const waits = new Map(waiting.map(({ labels: { family, kind, model }, value }) => [[family, kind, model].join('\0'), value]));
  return [...found]
    .map(([key, line]) => defined({ ...line, waiting: waits.get(key) }))
    .toSorted((a, b) => b.devices - a.devices || compareNames(a.model, b.model));
}

function namespacesOf(rows: (name: QuestionName) => readonly Sample[]): readonly NamespaceUse[] {
  const found = new Map<string, NamespaceUse>();
  const add = (question: QuestionName, what: 'devicesNow' | 'heldHours' | 'idleHours' | 'idleCost'): void => {
    for (const { labels, value } of rows(question)) {
      const { cluster, holder_namespace: namespace } = labels;
      if (namespace === undefined || !Number.isFinite(value)) continue;
      const key = `${cluster ?? ''}\0${namespace}`;
      found.set(key, { ...defined({ cluster, namespace }), ...found.get(key), [what]: value });
    }
  };
  add('heldNow', 'devicesNow');
  add('heldHours', 'heldHours');
  add('idleHours', 'idleHours');
  add('idleCost', 'idleCost');
  return [...found.values()].toSorted((a, b) => (b.idleHours ?? 0) - (a.idleHours ?? 0) || compareNames(a.namespace, b.namespace));
}

function outliersOf(samples: readonly Sample[], medians: readonly Sample[]): readonly Outlier[] {
  const typeOf = ({ cluster = '', family = '', kind = '', model = '' }: Labels): string => [cluster, family, kind, model].join('\0');
  const twins = new Map(medians.map(({ labels, value }) => [`${labels.what}\0${typeOf(labels)}`, value]));
  return samples.flatMap(({ labels, value }): readonly Outlier[] => {
    const { node = '', family = '', device = '', model = '', what } = labels;
    const median = twins.get(`${what}\0${typeOf(labels)}`);
    return median === undefined || !isCompared(what) ? [] : [{ node, family, device, model, what, value, twins: median }];
  });
}

const isCompared = (what: string | undefined): what is Outlier['what'] =>
  what === 'clock' || what === 'temperature' || what === 'link errors';
