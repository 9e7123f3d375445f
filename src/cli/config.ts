import { healthPolicy } from '../agent/health-policy.ts';
import { resourcesWithoutEffect } from '../agent/plugin.ts';
import { configurationRows, printJson, printYaml } from '../config/print.ts';
import { fileSchema } from '../config/schema.ts';
import { visible } from '../model/one-line.ts';
import type { CommandContext, Ending } from './context.ts';
import { policyComment, policyJson, policyTable } from './health/policy-text.ts';
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

/** Prints the effective values and the complete health policy, because the values contain only the changes to the policy. */
export async function printConfig({ configuration, families, output, options }: CommandContext): Promise<Ending> {
  const { policy } = healthPolicy(agentSettings(configuration, families));
  if (options.output === 'json') await output.write(printJson(configuration, { 'health.policy': policyJson(policy) }));
  else if (options.output === 'table')
    await output.write(textTable([['OPTION', 'VALUE', 'ORIGIN'], ...configurationRows(configuration), ...policyTable(policy)]));
  else await output.write((await printYaml(configuration)) + policyComment(policy));
  return { status: 0 };
}

export async function printSchema({ registry, output }: CommandContext): Promise<Ending> {
  await output.write(`${JSON.stringify(fileSchema(registry), null, 2)}\n`);
  return { status: 0 };
}
