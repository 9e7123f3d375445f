import { configurationRows, printJson, printYaml } from '../config/print.ts';
import { fileSchema } from '../config/schema.ts';
import type { CommandContext } from './context.ts';
import { textTable } from './text-table.ts';

/** Loading the configuration is the check: whatever is wrong has ended the command before. */
export async function checkConfig(): Promise<number> {
  return await Promise.resolve(0);
}

export async function printConfig({ configuration, output, options }: CommandContext): Promise<number> {
  if (options.output === 'json') await output.write(printJson(configuration));
  else if (options.output === 'table') await output.write(textTable([['OPTION', 'VALUE', 'ORIGIN'], ...configurationRows(configuration)]));
  else await output.write(await printYaml(configuration));
  return 0;
}

export async function printSchema({ registry, output }: CommandContext): Promise<number> {
  await output.write(`${JSON.stringify(fileSchema(registry), null, 2)}\n`);
  return 0;
}
