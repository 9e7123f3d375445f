// A fleet out of one recorded node: names of nodes, devices and pods of its own for each node, values that move as the recorded ones do.
import { closeSync, openSync, writeSync } from 'node:fs';

/** Every 25th node has a port that loses its link now and then. */
const SICK_EVERY = 25;
const JOB = 'device-agent';
const CHUNK = 1 << 22;

/**
 * `startSeconds`: time of step 0. `podSeconds`: how long a pod that holds a device lives; its successor has another name, and the counters
 * of its containers begin at 0.
 */
export function createFleet(recorded, { startSeconds, podSeconds = 3_600 }) {
  const { steps, stepSeconds, recordedAt } = recorded;
  const podSteps = Math.max(1, Math.round(podSeconds / stepSeconds));
  const seriesOf = (node) => (node % SICK_EVERY === SICK_EVERY - 1 ? recorded.sick : recorded.sound);
  const generationAt = (node, { labels }, step) => Math.floor((step + phaseOf(node, labels, podSteps)) / podSteps);

  /** `null` where the page has no such series. Nodes are at different steps of the history. */
  function valueAt(node, { kind, values, family }, step, firstStep) {
    const raw = (at) => {
      const own = at + node * 5;
      const value = values[own % steps];
      if (value === null || kind === 'gauge') return value;
      const rise = (values[steps] ?? 0) - (values[0] ?? 0);
      if (kind === 'counter') return value + Math.floor(own / steps) * rise;
      return rise === 0 ? value : value - values[own % steps] + startSeconds + at * stepSeconds - (recordedAt % 1);
    };
    const value = raw(step);
    return kind === 'counter' && family === 'containers' && value !== null ? value - (raw(firstStep) ?? 0) : value;
  }

  /** The names of a series on a node, in each generation of its pod: labels without those of the scrape, and its steps. */
  function* lives(node, series, stepCount) {
    if (series.family !== 'containers') {
      yield { labels: labelsOf(node, series.labels, 0), first: 0, last: stepCount - 1, begun: 0 };
      return;
    }
    const phase = phaseOf(node, series.labels, podSteps);
    for (let first = 0; first < stepCount; ) {
      const generation = generationAt(node, series, first);
      const end = Math.min(stepCount, (generation + 1) * podSteps - phase);
      yield { labels: labelsOf(node, series.labels, generation), first, last: end - 1, begun: Math.max(0, generation * podSteps - phase) };
      first = end;
    }
  }

  return {
    /** The page of a node at a step, for a scrape. */
    pageOf(node, step) {
      const lines = [];
      for (const series of seriesOf(node)) {
        const generation = series.family === 'containers' ? generationAt(node, series, step) : 0;
        const begun = Math.max(0, generation * podSteps - phaseOf(node, series.labels, podSteps));
        const value = valueAt(node, series, step, begun);
        if (value === null) continue;
        const labels = labelsOf(node, series.labels, generation);
        lines.push(`${series.name}${labels === '' ? '' : `{${labels}}`} ${textOf(value)}\n`);
      }
      return lines.join('');
    },

    /** OpenMetrics with timestamps and the labels of the scrape; gives the number of samples. `family`: only the series of one. */
    write(path, { nodes, stepCount, family }) {
      const file = openSync(path, 'w');
      let pending = '';
      let samples = 0;
      const flush = () => {
        writeSync(file, pending);
        pending = '';
      };
      try {
        // All series of one name stand together, and the samples of one series follow each other.
        for (const [name, ofNodes] of byName(nodes, seriesOf, family)) {
          for (const [node, series] of ofNodes) {
            for (const { labels, first, last, begun } of lives(node, series, stepCount)) {
              const head = `${name}{${[...targetLabels(node), ...(labels === '' ? [] : [renamed(labels)])].join(',')}} `;
              for (let step = first; step <= last; step += 1) {
                const value = valueAt(node, series, step, begun);
                if (value === null) continue;
                pending += `${head}${textOf(value)} ${startSeconds + step * stepSeconds}\n`;
                samples += 1;
              }
              if (pending.length > CHUNK) flush();
            }
          }
        }
        pending += '# EOF\n';
        flush();
      } finally {
        closeSync(file);
      }
      return samples;
    },

    /** Series of each family of one sound node. */
    seriesByFamily() {
      const counts = {};
      for (const { family, values } of recorded.sound) if (values[0] !== null) counts[family] = (counts[family] ?? 0) + 1;
      return counts;
    },
  };
}

export const nodeName = (node) => `node-${String(node).padStart(5, '0')}`;
export const instanceOf = (node) => `10.${node >> 8}.${node & 255}.1:9835`;
const targetLabels = (node) => [`instance="${instanceOf(node)}"`, `job="${JOB}"`, `node="${nodeName(node)}"`];

/** What a scrape does to a label of a series that the target has too. */
const renamed = (labels) => labels.replace(/(^|,)node="/, '$1exported_node="');

/** Ids that are unique in the world, and the pods. HCAs and PCI addresses have the same names on all nodes. */
function labelsOf(node, labels, generation) {
  const hex = node.toString(16).padStart(8, '0');
  return labels
    .replaceAll(/(GPU|MIG)-[0-9a-f]{8}-/g, `$1-${hex}-`)
    .replaceAll(/guid="[0-9a-f]{4}:[0-9a-f]{4}:/g, (guid) => `${guid.slice(0, -10)}${hex.slice(0, 4)}:${hex.slice(4)}:`)
    .replace(/serial="/, `serial="${hex}`)
    .replace(/(^|,)node="[^"]*"/, `$1node="${nodeName(node)}"`)
    .replace(/pod="([^"]*)"/, `pod="$1-${hex}-${generation}"`);
}

/** Pods of a fleet do not all begin at once. All series of one pod have the same phase. */
function phaseOf(node, labels, podSteps) {
  const [, pod = ''] = /pod="([^"]*)"/.exec(labels) ?? [];
  let hash = node + 17;
  for (const letter of pod) hash = (hash * 31 + letter.charCodeAt(0)) % 1_000_003;
  return hash % podSteps;
}

function byName(nodes, seriesOf, family) {
  const names = new Map();
  for (const node of nodes) {
    for (const series of seriesOf(node)) {
      if (family !== undefined && series.family !== family) continue;
      if (!names.has(series.name)) names.set(series.name, []);
      names.get(series.name).push([node, series]);
    }
  }
  return names;
}

const textOf = (value) => (Number.isFinite(value) ? String(value) : Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf');
