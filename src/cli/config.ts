import { healthPolicy } from '../agent/health.ts';
import { resourcesWithoutEffect } from '../agent/resources.ts';
import type { Configuration } from '../config/configuration.ts';
import { configurationRows, printJson, printYaml } from '../config/print.ts';
import { fileSchema } from '../config/schema.ts';
import { explainPolicy, type PolicyRow } from '../health/policy/explain-policy.ts';
import type { HealthPolicy } from '../health/policy/policy.ts';
import { formatDuration, millis } from '../model/duration.ts';
import { visible, visibleLines } from '../model/one-line.ts';
import { CONFIG_PATH, type ConfigAnswer, type UsedConfig } from '../server/control/control-socket.ts';
import { askFor, stateFileOf } from './agent-api.ts';
import type { CommandContext, Ending } from './context.ts';
import { agentSettings } from './settings.ts';
import { textTable } from './text-table.ts';

/**
 * Syntax errors have already ended the command. This reports settings without effect, with status 1: for example a health policy for a
 * condition that no enabled family has, a resource without devices, or what a declaration does not get because others can change it.
 */
export async function checkConfig({ configuration, families, declared, output }: CommandContext): Promise<Ending> {
  const settings = agentSettings(configuration, families);
  const reading = await settings.access?.read();
  if (reading?.problem !== undefined) throw reading.problem;
  const problems = [
    ...healthPolicy(settings).problems,
    ...resourcesWithoutEffect(settings),
    ...(declared?.leftOut ?? []).map(({ message, remedy }) => `${message}. ${remedy}`),
  ];
  await output.write(problems.map((problem) => `${visible(problem)}\n`).join(''));
  return { status: problems.length === 0 ? 0 : 1 };
}

/** The running agent is asked for what it uses. Flags, of which an agent knows nothing, and \`--read\` ask what a start would use. */
export async function printConfig(context: CommandContext): Promise<Ending> {
  const { configuration, flags, output, options } = context;
  const format = options.output === 'json' || options.output === 'table' ? options.output : 'yaml';
  const isOfStart = stateFileOf(context) === undefined || options.read === true || [...flags.keys()].some((key) => key !== 'state.file');
  const { answer } = isOfStart ? {} : await askFor(context)(CONFIG_PATH);
  const text = (answer?.body as ConfigAnswer | undefined)?.[format];
  if (text !== undefined) process.stderr.write('in use by the running agent\n');
  await output.write(typeof text === 'string' ? visibleLines(text) : await printed(context, configuration, format));
  return { status: 0 };
}

/**
 * What commands that ask the agent get of its configuration. `waiting`: keys whose new values in the file take effect at the next start.
 */
export function usedConfig(context: Printed, current: () => Configuration, waiting: () => readonly string[] = () => []): UsedConfig {
  return {
    values: () => Object.fromEntries(current().settings.map(({ entry, value }) => [entry.key, value])),
    async config() {
      const keys = waiting().map(visible).join(', ');
      const note = keys === '' ? '' : `# Other values in the file take effect at the next start of the agent: ${keys}\n`;
      const [yaml, json, table] = await Promise.all([
        printed(context, current(), 'yaml'),
        printed(context, current(), 'json'),
        printed(context, current(), 'table'),
      ]);
      return { yaml: note + yaml, json, table: note + table };
    },
  };
}

type Printed = Pick<CommandContext, 'families'>;

/** Prints the effective values and the complete health policy, because the values contain only the changes to the policy. */
async function printed({ families }: Printed, configuration: Configuration, format: 'yaml' | 'json' | 'table'): Promise<string> {
  const { policy } = healthPolicy(agentSettings(configuration, families));
  if (format === 'json') return printJson(configuration, { 'health.policy': policyJson(policy) });
  if (format === 'table') return textTable([['OPTION', 'VALUE', 'ORIGIN'], ...configurationRows(configuration), ...policyTable(policy)]);
  return (await printYaml(configuration)) + policyComment(policy);
}

export async function printSchema({ registry, output }: CommandContext): Promise<Ending> {
  await output.write(`${JSON.stringify(fileSchema(registry), null, 2)}\n`);
  return { status: 0 };
}

/** Formats the effective health policy as comment lines of a YAML file, which have no effect when the file is read. */
function policyComment(policy: HealthPolicy): string {
  const lines = [...generalRows(policy), ...conditionRows(policy)].map(([name, value]) => visible(`#   ${name}: ${value}`));
  return `# The effective health policy, including defaults:\n${lines.join('\n')}\n`;
}

/** Returns rows of name, value and origin. */
export function policyTable(policy: HealthPolicy): (readonly [string, string, string])[] {
  return [...generalRows(policy), ...conditionRows(policy)];
}

/** Returns the policy as a JSON value. */
export function policyJson(policy: HealthPolicy): object {
  return { ...Object.fromEntries(generalRows(policy).map(([name, value]) => [name, value])), conditions: explainPolicy(policy) };
}

function generalRows({ unknown, staleAfterMs, missingRetentionMs, flapping }: HealthPolicy): (readonly [string, string, string])[] {
  const duration = (ms: number): string => formatDuration(millis(ms));
  return [
    ['health.unknown', `the kubelet sees a device with unknown health as ${unknown}`, ''],
    ['health.stale-after', `health is unknown when the last reading is ${duration(staleAfterMs)} old`, ''],
    ['device.missing-retention', `a missing device is listed for ${duration(missingRetentionMs)}`, ''],
    [
      'health.flapping',
      `a condition flaps if it begins ${flapping.count} times within ${duration(flapping.windowMs)}, until it is quiet for ${duration(flapping.quietMs)}`,
      '',
    ],
  ];
}

function conditionRows(policy: HealthPolicy): (readonly [string, string, string])[] {
  return explainPolicy(policy).map((row) => [`health.conditions.${keyOf(row)}`, summaryOf(row), originOf(row)]);
}

const keyOf = ({ family, condition }: PolicyRow): string => `${family}.${condition}`;

function summaryOf(row: PolicyRow): string {
  if (!row.enabled) return 'does not count';
  const threshold = row.threshold === undefined ? '' : `, growth ${row.threshold}`;
  return `${row.severity}, ${row.class}${threshold}, for ${row.for}, recovery ${row.recovery}, remedy ${row.remedy}`;
}

function originOf({ configured }: PolicyRow): string {
  return configured.length === 0 ? 'default' : `${configured.join(', ')} from the file, otherwise default`;
}
