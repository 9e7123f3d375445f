import { incidentDirectory } from '../agent/incidents.ts';
import { stateOptions } from '../agent/options.ts';
import { keptFaultsIn } from '../health/journal/state-file.ts';
import { IncidentStore } from '../incidents/store.ts';
import { createChangeLog } from '../log/changes.ts';
import type { KeptFault } from '../model/fault.ts';
import { type Asked, REFUSAL_TEXTS } from './agent-api.ts';
import type { CommandContext } from './context.ts';

/** The faults on the disk. */
export async function faultsOnDisk({ configuration }: CommandContext): Promise<readonly KeptFault[]> {
  const { file } = configuration.section('state', stateOptions);
  return file === '' ? [] : await keptFaultsIn(file);
}

/** The records on the disk, when no agent gave a list. */
export async function storeOnDisk({ configuration, logger }: CommandContext, refusal: Asked['refusal']): Promise<IncidentStore> {
  if (refusal !== undefined) logger.warn('the running agent cannot be asked; the list is from the disk', REFUSAL_TEXTS[refusal]);
  const directory = incidentDirectory(configuration.section('state', stateOptions).file);
  const limits = { keep: Number.POSITIVE_INFINITY, keepBytes: Number.POSITIVE_INFINITY };
  return await IncidentStore.open({ directory, ...limits }, createChangeLog(logger), () => false);
}
