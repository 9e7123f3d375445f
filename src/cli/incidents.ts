import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { incidentDirectory } from '../agent/incidents.ts';
import { stateOptions } from '../agent/options.ts';
import { isCalled } from '../board/name.ts';
import { nearest } from '../config/nearest.ts';
import { systemWords, UserError } from '../errors.ts';
import { savedFaultsIn } from '../health/journal/state-file.ts';
import {
  byDevice,
  type DeviceIncidents,
  incidentsOf,
  type ListedFault,
  listedFaults,
  type NamespaceIncident,
} from '../incidents/by-device.ts';
import { type IncidentRecord, isRecord, type ListedIncident } from '../incidents/record.ts';
import { IncidentStore, type RecordRead } from '../incidents/store.ts';
import { createChangeLog } from '../log/changes.ts';
import type { SavedFault } from '../model/fault.ts';
import { incidentText } from '../server/pages/incident-text.ts';
import { type Asked, askFor, printAge, REFUSAL_TEXTS } from './agent-api.ts';
import { BOARD_PATH, boardIn } from './board-answer.ts';
import type { CommandContext, Ending } from './context.ts';
import { incidentsIn } from './incident-answer.ts';
import { podOption } from './pod-option.ts';
import { withProgress } from './progress.ts';
import { textTable } from './text-table.ts';

/** Where a command finds incidents: the running agent, or the disk. */
interface Source {
  readonly list: readonly ListedIncident[];
  readonly faults: readonly ListedFault[];
  /** When the agent took the latest snapshot. */
  readonly takenAt?: string | undefined;
  read(id: string): Promise<RecordRead | undefined>;
  /** Keys of the devices that people call so; none without an agent. */
  keysOf?(name: string): Promise<readonly string[]>;
}

const MOST_HINTS = 3;

/** Prints the list of incidents, or one of them. */
export async function runIncidents(context: CommandContext): Promise<Ending> {
  const { options, output } = context;
  const { id, by, pod, output: format } = options;
  if (by !== undefined && by !== 'device') throw new UserError('flag-invalid', { flag: '--by', problem: 'expected device' });
  if (by !== undefined && (id !== undefined || pod !== undefined))
    throw new UserError('flag-invalid', { flag: '--by', problem: 'counts the list, and takes no incident and no pod' });
  if (typeof pod === 'string') return await runPodIncidents(context, pod);
  const source = await withProgress('reading the incidents', sourceOf(context));
  const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
  if (typeof id !== 'string') {
    const devices = by === undefined ? undefined : byDevice(source.list.filter(({ device }) => device !== ''));
    const text = devices === undefined ? incidentTable(source.list) + faultTable(source.faults) : deviceTable(devices);
    const all = { incidents: source.list, faults: source.faults };
    await output.write(format === 'json' ? json(devices === undefined ? all : { devices }) : text);
    if (format !== 'json') printAge(source.takenAt);
    return { status: 0 };
  }
  const record = await recordOf(source, (await newestOfDevice(source, id)) ?? id);
  await output.write(format === 'json' ? json(record) : incidentText(record));
  return { status: 0 };
}

async function sourceOf(context: CommandContext): Promise<Source> {
  const ask = askFor(context);
  const { answer, refusal } = await ask('/api/incidents');
  const listed = incidentsIn(answer?.body);
  if (listed !== undefined) {
    return {
      list: listed,
      faults: faultsIn(answer?.body),
      takenAt: (answer?.body as { readonly takenAt?: string } | undefined)?.takenAt,
      async keysOf(name) {
        const board = boardIn((await ask(BOARD_PATH)).answer?.body);
        return board?.devices.flatMap((device) => (isCalled(device, name) ? [device.key] : [])) ?? [];
      },
      async read(id) {
        const asked = await ask(`/api/incidents/${encodeURIComponent(id)}`);
        if (asked.answer?.status === 404) return undefined;
        const body = asked.answer?.body;
        return isRecord(body, id) ? { record: body } : { problem: 'the agent gave no record; its log says more' };
      },
    };
  }
  const store = await storeOnDisk(context, refusal);
  return { list: store.list(), faults: listedFaults(await faultsOnDisk(context)), read: (id) => store.read(id) };
}

/** The newest record of the device of this name; undefined for the id of a record. */
async function newestOfDevice({ list, keysOf }: Source, name: string): Promise<string | undefined> {
  if (list.some(({ id }) => id === name)) return undefined;
  const keys = new Set(await keysOf?.(name));
  return list.find(({ device }) => keys.has(device) || device === name || device.slice(device.indexOf('/') + 1) === name)?.id;
}

async function recordOf(source: Source, id: string): Promise<IncidentRecord> {
  const read = source.list.some((one) => one.id === id) ? await source.read(id) : undefined;
  const shown = id.slice(0, 100);
  if (read === undefined) throw new UserError('incident-unknown', { id: shown, nearest: hint(id, source.list) });
  if (read.problem !== undefined) throw new UserError('incident-unreadable', { id: shown, problem: read.problem });
  return read.record;
}

/** Names ids with the text in them, or else the most similar one. */
function hint(id: string, list: readonly ListedIncident[]): string {
  const ids = list.map((one) => one.id);
  const similar = nearest(id, ids);
  const found = ids.filter((one) => one.toLowerCase().includes(id.toLowerCase()));
  const named = found.length > 0 ? found.slice(0, MOST_HINTS) : similar === undefined ? ids.slice(0, MOST_HINTS) : [similar];
  return named.length === 0 ? '; there are no incidents' : `; did you mean ${named.join(' or ')}?`;
}

export function incidentTable(list: readonly ListedIncident[]): string {
  if (list.length === 0) return 'There are no incidents.\n';
  const rows = list.map(({ id, time, began = time, device, states, conditions, holders, newerVersion }) => [
    id,
    began,
    device,
    newerVersion === undefined ? states.join(' > ') : `written by a newer agent (version ${newerVersion})`,
    conditions.join(', '),
    holders.join(', '),
  ]);
  return textTable([['ID', 'TIME', 'DEVICE', 'CHANGE', 'CONDITIONS', 'HOLDERS'], ...rows]);
}

/** The device with the most fatal incidents first. */
function deviceTable(devices: readonly DeviceIncidents[]): string {
  if (devices.length === 0) return 'There are no incidents.\n';
  const rows = devices.map(({ device, incidents, fatal, again, movedHolders, last }) => [
    device,
    ...[incidents, fatal, again, movedHolders].map(String),
    last,
  ]);
  return textTable([['DEVICE', 'INCIDENTS', 'FATAL', 'SAME CONDITION AGAIN', 'MOVED HOLDERS', 'LAST'], ...rows]);
}

interface IncidentsAnswer {
  readonly incidents: readonly NamespaceIncident[];
  readonly faults: readonly ListedFault[];
  /** Records that could not be read; absent when there are none. */
  readonly unread?: number;
  readonly takenAt?: string;
}

/** Prints the incidents that hit one pod, with nothing of other pods. `text`: `NAMESPACE/NAME`. */
async function runPodIncidents(context: CommandContext, text: string): Promise<Ending> {
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

async function ofNamespace(context: CommandContext, namespace: string): Promise<IncidentsAnswer> {
  const { answer, refusal } = await askFor(context)(`/api/incidents?namespace=${namespace}`);
  if (isFound(answer?.body)) return { ...answer.body, faults: faultsIn(answer.body) };
  const { found, unread } = await incidentsOf(await storeOnDisk(context, refusal), namespace);
  return { incidents: found, faults: listedFaults(await faultsOnDisk(context), namespace), unread };
}

/** False when another program, or an older agent, answered. */
function isFound(body: unknown): body is IncidentsAnswer {
  const list = (body as { readonly incidents?: unknown } | undefined | null)?.incidents;
  const isOwn = (one: Partial<NamespaceIncident>): boolean =>
    typeof one.id === 'string' && [one.states, one.conditions, one.remedies, one.held].every(Array.isArray);
  return Array.isArray(list) && list.every(isOwn);
}

function faultOfPod(fault: ListedFault, begin: string): readonly ListedFault[] {
  const holders = fault.holders.filter((holder) => holder.startsWith(begin));
  return holders.length === 0 ? [] : [{ ...fault, holders }];
}

/** Leaves out the other pods of the namespace. */
function ofPod(incident: NamespaceIncident, name: string): readonly NamespaceIncident[] {
  const held = incident.held.filter(({ pod }) => pod === name);
  const holders = [...new Set(held.map(({ namespace, pod, container }) => `${namespace}/${pod}/${container}`))];
  return held.length === 0 ? [] : [{ ...incident, holders, held }];
}

function table(incidents: readonly NamespaceIncident[], pod: string): string {
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

/** The table of faults below that of the incidents; empty without faults. */
export function faultTable(faults: readonly ListedFault[]): string {
  if (faults.length === 0) return '';
  const rows = faults.map(({ time, last, count, device, fault, remedy, blame, holders }) => [
    time,
    device,
    fault,
    last === undefined ? '1' : `${count} until ${last}`,
    remedy,
    `${blame === 'one-of' ? 'one of ' : ''}${holders.join(', ')}`,
  ]);
  return `\n${textTable([['FAULT AT', 'DEVICE', 'FAULT', 'TIMES', 'REMEDY', 'HELD BY'], ...rows])}`;
}

/** The faults in an answer of the API. None when an older agent answered. */
export function faultsIn(body: unknown): readonly ListedFault[] {
  const list = (body as { readonly faults?: unknown } | undefined | null)?.faults;
  const isListed = (one: Partial<ListedFault>): boolean =>
    [one.id, one.time, one.device, one.fault, one.remedy].every((text) => typeof text === 'string') && Array.isArray(one.holders);
  return Array.isArray(list) && list.every(isListed) ? list : [];
}

/** The faults on the disk. */
export async function faultsOnDisk({ configuration }: CommandContext): Promise<readonly SavedFault[]> {
  const { file } = configuration.section('state', stateOptions);
  return file === '' ? [] : await savedFaultsIn(file);
}

/** The records on the disk, when no agent gave a list. An agent that ran here left a state file, with or without records. */
export async function storeOnDisk({ configuration, logger }: CommandContext, refusal: Asked['refusal']): Promise<IncidentStore> {
  if (refusal !== undefined) logger.warn('the running agent cannot be asked; the list is from the disk', REFUSAL_TEXTS[refusal]);
  const { file } = configuration.section('state', stateOptions);
  const directory = incidentDirectory(file);
  const problem =
    directory === undefined
      ? '--state.file is empty'
      : await readdir(directory).then(
          () => undefined,
          (error) =>
            (error as NodeJS.ErrnoException).code === 'ENOENT' && existsSync(file) ? undefined : `${directory}: ${systemWords(error)}`,
        );
  if (problem !== undefined) throw new UserError('incidents-nowhere', { problem });
  const limits = { keep: Number.POSITIVE_INFINITY, keepBytes: Number.POSITIVE_INFINITY };
  return await IncidentStore.open({ directory, ...limits }, createChangeLog(logger), () => false);
}
