import { collectOnce, openReader } from '../agent/agent.ts';
import { refreshOptions } from '../agent/options.ts';
import { yamlText } from '../config/yaml-text.ts';
import { UserError } from '../errors.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { allocationsView, devicesView } from '../server/api/views.ts';
import type { CommandContext, Ending } from './context.ts';
import { withProgress } from './progress.ts';
import { agentSettings } from './settings.ts';
import { warnOfSysfs } from './sysfs-warning.ts';
import { snapshotTable, type TableForm } from './table.ts';
import { readVersion } from './version.ts';
import { repeated } from './watch.ts';

/** Reads everything once and prints it, or again and again with `-w`. */
export async function runList(context: CommandContext): Promise<Ending> {
  const { configuration, families, logger, output, options } = context;
  const form = formOf(options);
  warnOfSysfs(context);
  const settings = agentSettings(configuration, families);
  const parts = { logger, version: readVersion().version };
  if (options.watch === true) {
    const reader = await openReader(settings, parts);
    const { interval } = configuration.section('refresh', refreshOptions);
    const table = async (): Promise<string> => snapshotTable(await withProgress('reading the devices', reader.read()), fitted(form));
    await repeated(table, interval, output);
    return { status: 0, isStuck: !(await reader.close()) };
  }
  const { snapshot, page, ended } = await withProgress('reading the devices', collectOnce(settings, parts));
  if (options.output === 'prom') await output.writePage(page);
  else await output.write(await written(snapshot, options.output, form));
  return { status: 0, isStuck: !ended };
}

/** A terminal may be resized while the command runs. */
const fitted = (form: TableForm): TableForm => ({ ...form, columns: process.stdout.isTTY ? process.stdout.columns : undefined });

/** Options that shape a table are refused where there is none: a script would get something else than it asked for. */
function formOf({ output, by = 'device', watch }: CommandContext['options']): TableForm {
  const isTable = output === 'table' || output === 'wide';
  if (!isTable && by !== 'device') throw new UserError('flag-invalid', { flag: '--by', problem: `cannot be used with -o ${output}` });
  if (!isTable && watch === true) throw new UserError('flag-invalid', { flag: '--watch', problem: `cannot be used with -o ${output}` });
  return { isWide: output === 'wide', by: by === 'pod' ? 'pod' : 'device' };
}

async function written(snapshot: Snapshot, format: unknown, form: TableForm): Promise<string> {
  switch (format) {
    case 'json':
      return snapshotJson(snapshot);
    case 'yaml':
      return await yamlOf(JSON.parse(snapshotJson(snapshot)));
    default:
      return snapshotTable(snapshot, fitted(form));
  }
}

async function yamlOf(value: unknown): Promise<string> {
  const { Document } = await import('yaml');
  return await yamlText(new Document(value, { aliasDuplicateObjects: false }));
}

/** Formats devices and allocations as JSON, with the names of the HTTP API. */
export function snapshotJson(snapshot: Snapshot): string {
  const problems = snapshot.families.flatMap(({ family, problems: found }) => found.map((problem) => ({ family, ...problem })));
  return `${JSON.stringify({ ...devicesView(snapshot), ...allocationsView(snapshot), problems }, null, 2)}\n`;
}
