import { collectOnce } from '../agent/agent.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { allocationsView, devicesView } from '../server/api/views.ts';
import type { CommandContext, Ending } from './context.ts';
import { agentSettings } from './settings.ts';
import { warnOfSysfs } from './sysfs-warning.ts';
import { snapshotTable } from './table.ts';
import { readVersion } from './version.ts';

/** Reads everything once and prints it. */
export async function runList(context: CommandContext): Promise<Ending> {
  const { configuration, families, logger, output, options } = context;
  warnOfSysfs(context);
  const { version } = readVersion();
  const { snapshot, page, ended } = await collectOnce(agentSettings(configuration, families), { logger, version });
  await output.write(options.output === 'prom' ? page : options.output === 'json' ? snapshotJson(snapshot) : snapshotTable(snapshot));
  return { status: 0, isStuck: !ended };
}

/** Formats devices and allocations as JSON, with the names of the HTTP API. */
export function snapshotJson(snapshot: Snapshot): string {
  const problems = snapshot.families.flatMap(({ family, problems: found }) => found.map((problem) => ({ family, ...problem })));
  return `${JSON.stringify({ ...devicesView(snapshot), ...allocationsView(snapshot), problems }, null, 2)}\n`;
}
