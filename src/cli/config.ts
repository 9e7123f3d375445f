import { healthPolicy } from '../agent/health-policy.ts';
import { resourcesWithoutEffect } from '../agent/plugin.ts';
import { configurationRows, printJson, printYaml } from '../config/print.ts';
import { fileSchema } from '../config/schema.ts';
import type { CommandContext, Ending } from './context.ts';
import { policyComment, policyJson, policyTable } from './policy-text.ts';
import { agentSettings } from './settings.ts';
import { textTable } from './text-table.ts';

/**
 * What is wrong in form has ended the command before. What is left is what has no effect, such as a health policy for a
 * condition that no enabled family has, or a resource without devices: that is told, with status 1.
 */
export async function checkConfig({ configuration, families, output }: CommandContext): Promise<Ending> {
  const settings = agentSettings(configuration, families);
  const problems = [...healthPolicy(settings).problems, ...resourcesWithoutEffect(settings)];
  await output.write(problems.map((problem) => `${problem}\n`).join(''));
  return { status: problems.length === 0 ? 0 : 1 };
}

/** The values that hold and, since they only change it, the health policy that follows from them. */
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
