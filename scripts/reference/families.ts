import { unitOf } from '../../src/metrics/page/units.ts';
import { agentMetrics } from '../../src/metrics/series/agent-metrics.ts';
import { containerMetrics } from '../../src/metrics/series/container-metrics.ts';
import { deviceMetrics } from '../../src/metrics/series/device-metrics.ts';
import { expectedMetrics } from '../../src/metrics/series/expected-metrics.ts';
import { kubeletMetrics } from '../../src/metrics/series/kubelet-metrics.ts';
import { pluginMetrics } from '../../src/metrics/series/plugin-metrics.ts';
import { probeMetrics } from '../../src/metrics/series/probe-metrics.ts';
import { ProcessMetrics } from '../../src/metrics/series/process-metrics.ts';
import { CONTAINER_LABELS, containerTwin, createCatalogue, type FamilyMetrics } from '../../src/metrics/series/reading-metrics.ts';
import { containerUsageMetrics, deviceUsageMetrics } from '../../src/metrics/series/usage-metrics.ts';
import { waitingMetrics } from '../../src/metrics/series/waiting-metrics.ts';
import type { ProblemSpec } from '../../src/model/collection.ts';
import type { ListedHardware, PartSums } from '../../src/model/declaration.ts';
import { formatDuration, millis } from '../../src/model/duration.ts';
import type { ConditionSpec } from '../../src/model/health.ts';
import type { AgentMetricSpec, MetricSpec } from '../../src/model/metric.ts';
import { shared } from '../../src/model/shared-metrics.ts';
import { cell, code, escapeText } from './markdown.ts';

/** Data of the reference pages about one family, or about what all families have in common. */
export interface FamilyReference extends FamilyMetrics {
  readonly summary: string;
  /** Present when the family is a declaration: its conditions share a page with those of the other declared families. */
  readonly declared?: object;
  /** What the family was checked against, when that is less than hardware. */
  readonly proven?: string;
  readonly partSums?: readonly PartSums[];
  readonly listing?: readonly ListedHardware[];
  readonly conditions: readonly ConditionSpec[];
  readonly problems: readonly ProblemSpec[];
}

/** Renders the reference page of all metrics. */
export async function renderMetrics(families: readonly FamilyReference[]): Promise<string> {
  const sharedNames = new Set<string>(Object.values(shared).map(({ name }) => name));
  const catalogue = createCatalogue(families);
  const used = [...catalogue.values()].filter(({ name }) => sharedNames.has(name)).sort(byName);
  const own = families.map((family) => ({ ...family, metrics: family.metrics.filter(({ name }) => !sharedNames.has(name)) }));
  return `# Metrics

This page is generated from the declarations in the source. It is a contract: a name, a label or a unit on it does not change within a
major version. A release can add metrics, labels of \`_info\` metrics, and values of labels.

- **Absent is unknown.** A value that cannot be read is absent, never 0.
- **Devices.** Hardware series have the label \`device\` and the labels listed here. They never name a pod. Join them with
  \`container_device_allocation\` to find the holder.
- **Containers.** Each metric marked *twin* also exists as \`container_<name>\`, with the additional labels
  ${CONTAINER_LABELS.map(code).join(', ')}. If one container holds a device, the twins show all of the device's readings. If several
  containers share it, they show only readings that belong to one container. The counters of a twin start at 0 when the agent first sees
  the container with the device. They go on over a restart of the agent. \`labels.attribution\` puts a prefix before \`namespace\`, \`pod\` and \`container\`.
- **States.** A metric with the label \`state\` or \`action\` has one series, for the value that holds. \`device_health\` alone has one
  series for each of its four states, because alerts compare it with its past.
- **Times.** A moment is a \`_timestamp_seconds\`. Its age is \`time()\` minus the metric.
- **Formats.** Prometheus text 0.0.4, or OpenMetrics 1.0 with \`# UNIT\` for a client that accepts it.

## Parents and parts

A sum over \`device\` must not count a device and its parts together. \`device_info{parent}\` names the parent of a part.

| Parent | Parts | Does the parent include its parts? |
|---|---|---|
${families
  .flatMap(({ partSums = [] }) => partSums)
  .map(({ parent, parts, areIncluded }) => `| ${cell(parent)} | ${cell(parts)} | ${cell(areIncluded)} |\n`)
  .join('')}
## Every device

${table([...Object.values(deviceMetrics), ...Object.values(deviceUsageMetrics)])}
## Measured by several families

All vendors use one name and one unit. The tables show the source of the value for each family.

${used.map((spec) => sharedSection(spec, families)).join('\n')}
${own.map(familySection).join('')}## Containers

These labels are complete: no \`device\` is added.

${table(Object.values(containerMetrics))}
Totals of what a container used, also after its end: [usage.md](usage.md). They are 0 until the container has held the device for
a minute. A single reading, as of \`device-agent list\`, has none.

${table(Object.values(containerUsageMetrics))}
Whether a container that holds GPUs waits, over all its devices: [waiting.md](waiting.md). A single reading, which has no past, has none.

${table(Object.values(waitingMetrics))}
Twins, with their help texts:

${twins([...catalogue.values()])}
## The agent itself

${table(Object.values(agentMetrics))}
### Probes

${table([...Object.values(probeMetrics), ...Object.values(expectedMetrics)])}
### Kubelet

${table(Object.values(kubeletMetrics))}
### Device plugin

${table(Object.values(pluginMetrics))}
### Process

${table(new ProcessMetrics().specs())}`;
}

/**
 * Renders the reference of all conditions, keyed by path: one page with what holds for all families, one page for each family in code, and one for all
 * declared families.
 * `defaultsOf` renders the table of the default policy of a family.
 */
export function renderConditions(
  everyFamily: FamilyReference,
  families: readonly FamilyReference[],
  policy: string,
  defaultsOf: (family: string) => string,
): Readonly<Record<string, string>> {
  const judged = families.filter(({ conditions }) => conditions.length > 0);
  const declared = judged.filter((family) => family.declared !== undefined);
  const pages = judged
    .filter((family) => !declared.includes(family))
    .map((family): [string, string] => [`docs/health/${family.name}.md`, familyPage(family, defaultsOf(family.name))]);
  if (declared.length > 0) pages.push(['docs/health/declared.md', declaredPage(declared, defaultsOf)]);
  const rows = judged.map((family) => {
    const page = declared.includes(family) ? `declared.md#${family.name}` : `${family.name}.md`;
    return `| [${escapeText(family.name)}](health/${page}) | ${family.conditions.length} | ${cell(family.summary)} |`;
  });
  const page = `# Health

This page is generated from the declarations in the source. Probes report facts. The health policy decides when a fact counts and how
severe it is. This page lists the defaults. The configuration can change them; \`device-agent config print\` shows the effective values.

| Family | Conditions | Hardware |
|---|---|---|
${rows.join('\n')}

## Words

- **Severity**: *fatal* makes a device \`unhealthy\`. *degraded* makes it \`degraded\` but leaves it in service. *info* does not change its state.
- **Class**: *latched* usually stays until an operator acts. *self-clearing* follows the current value. *rate* evaluates the growth of a counter.
  *in-progress* is normal until it takes too long. *no-data* means that the state could not be read: a fatal one makes the device \`unknown\`
  and not \`unhealthy\`, and the page and \`device-agent health\` then say *state unknown* instead of *fatal*.
- **For** is how long a condition must hold before it counts. **Recovery** is how long it must be absent before it is withdrawn.

The API, the page, \`device-agent list\` and \`device-agent health\` show the status of a condition with these words:

- **pending**: The condition holds but does not count yet. The API lists it in \`health.pending\`. If it continues, it counts from \`countsAt\`.
- **recovering**: The condition ended but still counts. In the API it has the field \`recovering\`: it ended at \`since\`, and if it does not
  return, the first reading after \`until\` withdraws it. Its message describes the past, and its remedy is \`none\`.
- **unverified**: Since \`unverifiedSince\` no reading could show whether the condition still holds. The agent keeps its last known status.
  When its source will not return, \`device-agent health accept DEVICE [CONDITION] --why TEXT\` ends it; the next read that sees the fault raises it again.
- **not checked**: A fatal condition that the device can have, and that no read could judge so far. \`health.unchecked\` decides whether it is offered.
  A condition whose file is missing counts as one that the device cannot have, unless another file shows that it can.

## The policy without a configuration

${policy}
The first column of each table below and on the pages of the families is the key of the condition in \`health.conditions\`. The family \`*\` means every family.
A finding can have another severity than the table says, for example by a code of the driver. A severity in the configuration overrides both. A finding can also have its own remedy: that of a disabled port is to enable it.

## ${escapeText(everyFamily.name)}

${escapeText(everyFamily.summary)}

${defaultsOf('*')}
${everyFamily.conditions.map(conditionSection).join('\n')}`;
  return Object.fromEntries([['docs/health.md', page], ...pages]);
}

function familyPage({ name, summary, proven, conditions, listing = [] }: FamilyReference, defaults: string): string {
  return `# Health: ${escapeText(name)}

${aboutText({ summary, proven })}

This page is generated from the declarations in the source. [Health](../health.md) explains the words and the conditions that all families have.

${defaults}
${listing.length === 0 ? '' : `${listingTable(listing)}\n`}${conditions.map((condition) => conditionSection(condition)).join('\n')}`;
}

function listingTable(listing: readonly ListedHardware[]): string {
  const rows = listing.map(({ what, is }) => `| ${cell(what)} | ${cell(is)} |\n`);
  return `### Hardware that the driver does not show\n\n| Hardware | To the agent |\n|---|---|\n${rows.join('')}`;
}

/** One page for all declared families. A condition that several of them have is described once, at the end. */
function declaredPage(families: readonly FamilyReference[], defaultsOf: (family: string) => string): string {
  const isShared = (section: string): boolean =>
    families.filter(({ conditions }) => conditions.map(conditionSection).includes(section)).length > 1;
  const sections = families.flatMap(({ conditions }) => conditions.map(conditionSection));
  const ofFamily = ({ name, summary, proven, conditions }: FamilyReference): string => `## ${escapeText(name)}

${aboutText({ summary, proven })}

${defaultsOf(name)}
${conditions
  .map(conditionSection)
  .filter((section) => !isShared(section))
  .join('\n')}`;
  return `# Health: declared families

This page is generated from the declarations in \`families/\`. [Health](../health.md) explains the words and the conditions that all families have.
Conditions that several of these families have are [at the end](#several-families).

${families.map(ofFamily).join('\n')}
## Several families

${[...new Set(sections.filter(isShared))].join('\n')}`;
}

/** Renders the reference page of all problems. A problem that several families have is in one row. */
export function renderProblems(families: readonly FamilyReference[]): string {
  const familiesOf = new Map<string, string[]>();
  for (const { name, problems } of families)
    for (const problem of problems) familiesOf.set(problemRow(problem), [...(familiesOf.get(problemRow(problem)) ?? []), name]);
  const shared = [...familiesOf].filter(([, names]) => names.length > 1);
  const sections = families.flatMap(({ name, summary, problems }) => {
    const own = problems.map(problemRow).filter((row) => familiesOf.get(row)?.length === 1);
    if (own.length === 0) return [];
    return `## ${escapeText(name)}\n\n${escapeText(summary)}\n\n| Code | Meaning | Remedy |\n|---|---|---|\n${own.map((row) => `| ${row} |`).join('\n')}\n`;
  });
  if (shared.length > 0)
    sections.push(
      `## Several families\n\n| Code | Meaning | Remedy | Families |\n|---|---|---|---|\n${shared.map(([row, names]) => `| ${row} | ${names.map(code).join(', ')} |`).join('\n')}\n`,
    );
  return `# Problems

This page is generated from the declarations in the source. A problem prevents a probe from reading hardware. It does not mean that a
device is unhealthy. The codes are shown in the log, in \`device_agent_problems{family,code}\`, in \`/api/v1/status\` and on the page.
${shared.length > 0 ? 'Problems that several families have are [at the end](#several-families).\n' : ''}
${sections.join('\n')}`;
}

const problemRow = ({ code: name, meaning, remedy }: ProblemSpec): string => [code(name), cell(meaning), cell(remedy)].join(' | ');

function table(specs: readonly (MetricSpec | AgentMetricSpec)[]): string {
  const rows = specs.map((spec) => {
    const { name, type, labels, source } = spec;
    const twin = 'container' in spec && spec.container === true ? ' *twin*' : '';
    return `| ${code(name)}${twin} | ${type} | ${unitText(name)} | ${labels.map(code).join(', ')} | ${cell(spec.help)} | ${cell(source)} |`;
  });
  return `| Metric | Type | Unit | Labels | | Source |\n|---|---|---|---|---|---|\n${rows.join('\n')}\n`;
}

function sharedSection(spec: MetricSpec, families: readonly FamilyReference[]): string {
  const familiesOf = new Map<string, string[]>();
  for (const { name, metrics } of families)
    for (const { labels, source } of metrics.filter((one) => one.name === spec.name)) {
      const cells = `${labels.map(code).join(', ')} | ${cell(source)}`;
      familiesOf.set(cells, [...(familiesOf.get(cells) ?? []), escapeText(name)]);
    }
  const rows = [...familiesOf].map(([cells, names]) => `| ${names.join(', ')} | ${cells} |`);
  const kind = [spec.type, unitText(spec.name), spec.container === true ? '*twin*' : ''].filter((text) => text !== '').join(', ');
  return `### ${code(spec.name)}\n\n${escapeText(spec.help)} (${kind})\n\n| Family | Labels | Source |\n|---|---|---|\n${rows.join('\n')}\n`;
}

function familySection({ name, summary, proven, metrics }: FamilyReference): string {
  if (metrics.length === 0 && proven === undefined) return '';
  if (metrics.length === 0) return `## Family ${escapeText(name)}\n\n${aboutText({ summary, proven })}\n\n`;
  return `## Family ${escapeText(name)}\n\n${aboutText({ summary, proven })}\n\n${table(metrics)}\n`;
}

function twins(specs: readonly MetricSpec[]): string {
  const rows = specs
    .filter(({ container }) => container === true)
    .map(containerTwin)
    .sort(byName)
    .map((spec) => `| ${code(spec.name)} | ${spec.type} | ${cell(spec.help)} |`);
  return `| Metric | Type | |\n|---|---|---|\n${rows.join('\n')}\n`;
}

function conditionSection(spec: ConditionSpec): string {
  const { type, severity, forMs = 0, recoveryMs = 0, threshold, remedy, reasons, meaning, source } = spec;
  const times = [`for ${formatDuration(millis(forMs))}`, `recovery ${formatDuration(millis(recoveryMs))}`];
  if (threshold !== undefined) times.push(`growth above ${threshold.growth} per ${formatDuration(millis(threshold.windowMs))}`);
  return `### ${escapeText(type)}

${escapeText(meaning)}

- Severity ${severity}, class ${spec.class}, ${times.join(', ')}
- Remedy: ${remedy}
- Reasons: ${reasons.map(code).join(', ')}
- Source: ${escapeText(source)}
`;
}

const aboutText = ({ summary, proven }: { readonly summary: string; readonly proven: string | undefined }): string =>
  escapeText(proven === undefined ? summary : `${summary}\n\nHow far it is proven: ${proven}`);

/** The unit in words; empty without one. */
const unitText = (name: string): string => unitOf(name)?.replaceAll('_', ' ') ?? '';

const byName = (a: MetricSpec, b: MetricSpec): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
