import { UserError } from '../errors.ts';
import { incidentsOf, type ListedFault, listedFaults, type TenantIncident } from '../incidents/by-device.ts';
import { askFor, printAge } from './agent-api.ts';
import type { CommandContext, Ending } from './context.ts';
import { faultsIn, faultTable } from './fault-table.ts';
import { faultsOnDisk, storeOnDisk } from './incidents-on-disk.ts';
import { podOption } from './pod-option.ts';
import { withProgress } from './progress.ts';
import { textTable } from './text-table.ts';

interface Found {
  readonly incidents: readonly TenantIncident[];
  readonly faults: readonly ListedFault[];
  /** Records that could not be read; absent when there are none. */
  readonly unread?: number;
  readonly takenAt?: string;
}

/** Prints the incidents that hit one pod, with nothing of other pods. `text`: `NAMESPACE/NAME`. */
export async function runPodIncidents(context: CommandContext, text: string): Promise<Ending> {
  const { options, output, logger } = context;
  const { namespace, pod: name } = podOption(text);
  if (options.id !== undefined) {
    const problem = 'the record of one incident names all its pods: leave out the id or --pod';
    throw new UserError('usage-invalid', { problem, command: 'device-agent incidents' });
  }
  const { incidents, faults, unread = 0, takenAt } = await withProgress('reading the incidents', ofNamespace(context, namespace));
  const own = incidents.flatMap((incident) => ofPod(incident, name));
  const hit = faults.flatMap((fault) => faultOfPod(fault, `${namespace}/${name}/`));
  const tables = own.length === 0 && hit.length > 0 ? faultTable(hit).trimStart() : table(own, text) + faultTable(hit);
  await output.write(options.output === 'json' ? `${JSON.stringify({ incidents: own, faults: hit }, null, 2)}\n` : tables);
  if (options.output !== 'json') printAge(takenAt);
  if (unread > 0) logger.warn('records of incidents cannot be read, so it is unknown which pods they hit', { records: unread });
  return { status: 0 };
}

async function ofNamespace(context: CommandContext, namespace: string): Promise<Found> {
  const { answer, refusal } = await askFor(context)(`/api/incidents?namespace=${namespace}`);
  if (isFound(answer?.body)) return { ...answer.body, faults: faultsIn(answer.body) };
  const { found, unread } = await incidentsOf(await storeOnDisk(context, refusal), [namespace]);
  return { incidents: found, faults: listedFaults(await faultsOnDisk(context), [namespace]), unread };
}

/** False when another program, or an older agent, answered. */
function isFound(body: unknown): body is Found {
  const list = (body as { readonly incidents?: unknown } | undefined | null)?.incidents;
  const isOwn = (one: Partial<TenantIncident>): boolean =>
    typeof one.id === 'string' && [one.states, one.conditions, one.remedies, one.held].every(Array.isArray);
  return Array.isArray(list) && list.every(isOwn);
}

function faultOfPod(fault: ListedFault, begin: string): readonly ListedFault[] {
  const holders = fault.holders.filter((holder) => holder.startsWith(begin));
  return holders.length === 0 ? [] : [{ ...fault, holders }];
}

/** Leaves out the other pods of the namespace. */
function ofPod(incident: TenantIncident, name: string): readonly TenantIncident[] {
  const held = incident.held.filter(({ pod }) => pod === name);
  const holders = [...new Set(held.map(({ namespace, pod, container }) => `${namespace}/${pod}/${container}`))];
  return held.length === 0 ? [] : [{ ...incident, holders, held }];
}

function table(incidents: readonly TenantIncident[], pod: string): string {
  if (incidents.length === 0) return `No recorded incident hit the pod ${pod}.\n`;
  const rows = incidents.map(({ id, time, device, states, conditions, remedies, held }) => [
    id,
    time,
    device,
    states.join(' > '),
    conditions.join(', '),
    remedies.join(', '),
    held.map(({ container, since, until }) => `${container} ${until === undefined ? `since ${since}` : `${since} to ${until}`}`).join(', '),
  ]);
  return textTable([['ID', 'TIME', 'DEVICE', 'CHANGE', 'CONDITIONS', 'REMEDIES', 'HELD BY'], ...rows]);
}
