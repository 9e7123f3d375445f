import type { ProblemSpec } from '../../model/collection.ts';
import { formatDuration, millis } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';
import type { AgentMetricSpec, MetricSpec } from '../../model/metric.ts';
import { shared } from '../../model/shared-metrics.ts';
import { agentMetrics } from '../series/agent-metrics.ts';
import { containerMetrics } from '../series/container-metrics.ts';
import { deviceMetrics } from '../series/device-metrics.ts';
import { kubeletMetrics } from '../series/kubelet-metrics.ts';
import { pluginMetrics } from '../series/plugin-metrics.ts';
import { probeMetrics } from '../series/probe-metrics.ts';
import { ProcessMetrics } from '../series/process-metrics.ts';
import { CONTAINER_LABELS, containerTwin, createCatalogue, type FamilyMetrics } from '../series/reading-metrics.ts';

/** What the reference pages tell of a family, or of what all families have in common. */
export interface FamilyReference extends FamilyMetrics {
  readonly summary: string;
  readonly conditions: readonly ConditionSpec[];
  readonly problems: readonly ProblemSpec[];
}

/** Reference page of all metrics. */
export async function renderMetrics(families: readonly FamilyReference[]): Promise<string> {
  const sharedNames = new Set<string>(Object.values(shared).map(({ name }) => name));
  const catalogue = createCatalogue(families);
  const used = [...catalogue.values()].filter(({ name }) => sharedNames.has(name)).sort(byName);
  const own = families.map((family) => ({ ...family, metrics: family.metrics.filter(({ name }) => !sharedNames.has(name)) }));
  return `# Metrics

Written from the declarations in the source: names, units and labels here are those of \`/metrics\`. A value that cannot be read is
absent, never 0. Series of the hardware carry \`device\` and the labels named; they never name a pod. Metrics marked *twin* exist a second
time as \`container_<name>\` with the labels ${CONTAINER_LABELS.map(code).join(', ')} besides their own: for a device that
one container holds, its readings; of a shared device only what can be told apart. Counters of a twin begin at 0 when the container is first
seen with the device.

## Every device

${table(Object.values(deviceMetrics))}
## Measured by several families

One name and one unit for all vendors. Where each family takes the number from:

${used.map((spec) => sharedSection(spec, families)).join('\n')}
${own.map(familySection).join('')}## Containers

These labels are complete: no \`device\` is added.

${table(Object.values(containerMetrics))}
Twins, with the help text they have on the page:

${twins([...catalogue.values()])}
## The agent itself

${table(Object.values(agentMetrics))}
### Probes

${table(Object.values(probeMetrics))}
### Kubelet

${table(Object.values(kubeletMetrics))}
### Device plugin

${table(Object.values(pluginMetrics))}
### Process

${table(new ProcessMetrics().specs())}`;
}

/** Reference page of all conditions; `policy` is a section of its own in front of them. */
export function renderConditions(families: readonly FamilyReference[], policy = ''): string {
  const sections = families
    .filter(({ conditions }) => conditions.length > 0)
    .map(
      ({ name, summary, conditions }) =>
        `## ${escapeText(name)}\n\n${escapeText(summary)}\n\n${conditions.map(conditionSection).join('\n')}`,
    );
  return `# Health

Written from the declarations in the source. Probes tell facts; the policy says when a fact counts and what it means. The defaults are
listed here, each can be changed in the configuration, and \`device-agent config print\` shows what holds.

- **Severity** *fatal* makes a device \`unhealthy\`, *degraded* makes it \`degraded\` and leaves it in service, *info* is for the record.
- **Class** *latched* stays until an operator acts, *self-clearing* follows a live level, *rate* judges the growth of a counter,
  *in-progress* is normal until its time is over, *no-data* means that nothing could be read.
- **For** is how long it must hold before it counts, **recovery** how long it must be quiet before it is withdrawn.

API, page, \`device-agent list\` and \`device-agent health\` tell how a condition stands, each with these words:

- **pending**: it holds and does not count yet. In the API it is in \`health.pending\`, and \`countsAt\` tells from when it counts if it goes on.
- **recovering**: it ended and still counts. In the API it has \`recovering\`: it ended at \`since\`, and the first look after \`until\` withdraws it
  if it stays so. Its message tells what was, and its remedy is \`none\`.
- **unverified**: since \`unverifiedSince\` no look could tell whether it still holds. It stays as it was known then.

${policy === '' ? '' : `${policy}\n`}${sections.join('\n')}`;
}

/** Reference page of all problems. */
export function renderProblems(families: readonly FamilyReference[]): string {
  const sections = families
    .filter(({ problems }) => problems.length > 0)
    .map(({ name, summary, problems }) => {
      const rows = problems.map(({ code: name, meaning, remedy }) => `| ${code(name)} | ${cell(meaning)} | ${cell(remedy)} |`);
      return `## ${escapeText(name)}\n\n${escapeText(summary)}\n\n| Code | Meaning | Way out |\n|---|---|---|\n${rows.join('\n')}\n`;
    });
  return `# Problems

Written from the declarations in the source. A problem keeps a probe from reading hardware; it says nothing about the health of a device.
Codes stand in the log, in \`device_agent_problems{family,code}\`, in \`/api/v1/status\` and on the page.

${sections.join('\n')}`;
}

function table(specs: readonly (MetricSpec | AgentMetricSpec)[]): string {
  const rows = specs.map((spec) => {
    const { name, type, labels, help, source } = spec;
    const twin = 'container' in spec && spec.container === true ? ' *twin*' : '';
    return `| ${code(name)}${twin} | ${type} | ${unitOf(name)} | ${labels.map(code).join(', ')} | ${cell(help)} | ${cell(source)} |`;
  });
  return `| Metric | Type | Unit | Labels | | Source |\n|---|---|---|---|---|---|\n${rows.join('\n')}\n`;
}

function sharedSection(spec: MetricSpec, families: readonly FamilyReference[]): string {
  const rows = families.flatMap((family) =>
    family.metrics
      .filter(({ name }) => name === spec.name)
      .map(({ labels, source }) => `| ${escapeText(family.name)} | ${labels.map(code).join(', ')} | ${cell(source)} |`),
  );
  const kind = [spec.type, unitOf(spec.name), spec.container === true ? '*twin*' : ''].filter((text) => text !== '').join(', ');
  return `### ${code(spec.name)}\n\n${escapeText(spec.help)} (${kind})\n\n| Family | Labels | Source |\n|---|---|---|\n${rows.join('\n')}\n`;
}

function familySection({ name, summary, metrics }: FamilyReference): string {
  return metrics.length === 0 ? '' : `## Family ${escapeText(name)}\n\n${escapeText(summary)}\n\n${table(metrics)}\n`;
}

function twins(specs: readonly MetricSpec[]): string {
  const rows = specs
    .filter(({ container }) => container === true)
    .map(containerTwin)
    .sort(byName)
    .map(({ name, type, help }) => `| ${code(name)} | ${type} | ${cell(help)} |`);
  return `| Metric | Type | |\n|---|---|---|\n${rows.join('\n')}\n`;
}

function conditionSection(spec: ConditionSpec): string {
  const { type, severity, forMs = 0, recoveryMs = 0, threshold, remedy, reasons, meaning, source } = spec;
  const times = [`for ${formatDuration(millis(forMs))}`, `recovery ${formatDuration(millis(recoveryMs))}`];
  if (threshold !== undefined) times.push(`counts above ${threshold.growth} per ${formatDuration(millis(threshold.windowMs))}`);
  return `### ${escapeText(type)}

${escapeText(meaning)}

- ${severity}, ${spec.class}, ${times.join(', ')}
- Remedy: ${remedy}
- Reasons: ${reasons.map(code).join(', ')}
- Source: ${escapeText(source)}
`;
}

const UNITS = ['celsius', 'bytes_per_second', 'bytes', 'seconds', 'ratio', 'joules', 'watts', 'volts', 'amperes', 'hertz', 'rpm', 'lanes'];

/** The unit that a name ends in; empty for plain counts and for 0 or 1. */
export function unitOf(name: string): string {
  const base = name.replace(/_total$/, '');
  return UNITS.find((unit) => base.endsWith(`_${unit}`))?.replaceAll('_', ' ') ?? '';
}

const byName = (a: MetricSpec, b: MetricSpec): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const code = (text: string): string => `\`${text}\``;
/** Keeps `<x>` in a text from being taken for a tag. */
const escapeText = (text: string): string => text.replaceAll('<', '&lt;');
const cell = (text: string): string => escapeText(text).replaceAll('|', '\\|').replaceAll('\n', ' ');
