import { defined } from '../model/defined.ts';
import type { FaultBlame } from '../model/events.ts';
import type { FaultProcess, SavedFault } from '../model/fault.ts';
import type { Remedy, Severity } from '../model/health.ts';
import { holdersHit, type IncidentHolder, type IncidentRecord, type IncidentSummary, summaryOf } from './record.ts';
import type { RecordRead } from './store.ts';

/** Kept incidents of one device. */
export interface DeviceIncidents {
  /** Key that the device had at its last incident, `family/id`. */
  readonly device: string;
  readonly incidents: number;
  /** Incidents in which the device became unhealthy. */
  readonly fatal: number;
  /** Incidents with a condition that an earlier one also had. */
  readonly again: number;
  /** Those of `again` in which other containers held the device than before: the fault stayed when the holders moved. */
  readonly movedHolders: number;
  /** Time of the last incident. */
  readonly last: string;
}

/** True for a record of the hardware that has the name now. Without the hardware, as when the device is gone, the name decides. */
export const isOfDevice = (one: Pick<IncidentSummary, 'device' | 'hardware'>, key: string, hardware: string | undefined): boolean =>
  one.hardware === undefined || hardware === undefined ? one.device === key : one.hardware === hardware;

/** Counts the incidents of each device, of its hardware where records name it. The device with the most fatal incidents is first. */
export function byDevice(incidents: readonly IncidentSummary[]): readonly DeviceIncidents[] {
  const groups = new Map<string, IncidentSummary[]>();
  for (const one of incidents.toSorted((a, b) => Date.parse(a.time) - Date.parse(b.time))) {
    const key = one.hardware ?? one.device;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  const devices = [...groups.values()].map(counted);
  return devices.sort((a, b) => b.fatal - a.fatal || b.incidents - a.incidents || (a.last < b.last ? 1 : -1));
}

/** How often devices became unhealthy since then. Those that did not are absent. */
export function failuresSince(sinceMs: number, incidents: readonly IncidentSummary[]) {
  return byDevice(incidents.filter(({ time }) => Date.parse(time) >= sinceMs)).flatMap(({ device, fatal: count }) =>
    count === 0 ? [] : [{ device: device.slice(device.indexOf('/') + 1), count }],
  );
}

/** `incidents`: of one device, the oldest first; at least one. */
function counted(incidents: readonly IncidentSummary[]): DeviceIncidents {
  /** Holders at the last incident with each condition. */
  const holdersAt = new Map<string, readonly string[]>();
  let again = 0;
  let movedHolders = 0;
  for (const { conditions, holders } of incidents) {
    const earlier = conditions.flatMap((condition) => holdersAt.get(condition) ?? []);
    const isSame = conditions.some((condition) => holdersAt.has(condition));
    if (isSame) again += 1;
    // While a list of holders is empty or unknown, nothing shows that they moved.
    if (isSame && earlier.length > 0 && holders.length > 0 && !holders.some((holder) => earlier.includes(holder))) movedHolders += 1;
    for (const condition of conditions) holdersAt.set(condition, holders);
  }
  const { device, time } = incidents.at(-1) as IncidentSummary;
  const fatal = incidents.filter(({ states }) => states.slice(1).includes('unhealthy')).length;
  return { device, incidents: incidents.length, fatal, again, movedHolders, last: time };
}

/** A fault in the list of incidents. Times in RFC 3339. */
export interface ListedFault {
  readonly id: string;
  readonly time: string;
  /** Time of the latest repeat; absent when it came once. */
  readonly last?: string;
  readonly count: number;
  /** Key of the device, `family/id`. */
  readonly device: string;
  /** What the family calls it, with its number: `Hang 43`. */
  readonly fault: string;
  readonly severity: Severity;
  readonly remedy: Remedy;
  readonly blame: FaultBlame;
  /** `namespace/pod/container`. */
  readonly holders: readonly string[];
  /** These three can name other pods, so the list of a namespace lacks them. */
  readonly message?: string;
  readonly lines?: readonly string[];
  readonly process?: Pick<FaultProcess, 'pid' | 'name'>;
}

/** The newest first. `namespace`: only what hit pods of it, with nothing of other pods. */
export function listedFaults(kept: readonly SavedFault[], namespace?: string): readonly ListedFault[] {
  return kept.toReversed().flatMap((fault): ListedFault[] => {
    const { id, device, type, code, severity, remedy, blame, count, timeMs, lastMs, message, lines, process } = fault;
    const holders = fault.holders.filter((holder) => namespace === undefined || holder.namespace === namespace);
    if (namespace !== undefined && holders.length === 0) return [];
    return [
      defined({
        id,
        time: new Date(timeMs).toISOString(),
        last: count === 1 ? undefined : new Date(lastMs).toISOString(),
        ...{ count, device, fault: `${type} ${code}`, severity, remedy, blame },
        holders: holders.map((holder) => `${holder.namespace}/${holder.pod}/${holder.container}`),
        ...(namespace === undefined
          ? { message, lines, process: process === undefined ? undefined : defined({ pid: process.pid, name: process.name }) }
          : {}),
      }),
    ];
  });
}

/**
 * The part of an incident that concerns one namespace: device, change, conditions, remedies, times and the holders there.
 * Messages, kernel lines, processes, readings, other devices and later changes are left out, because they can name or count pods of others.
 */
export interface NamespaceIncident extends Omit<IncidentSummary, 'hardware'> {
  /** Remedies in the order of the conditions, without `none`. */
  readonly remedies: readonly Remedy[];
  /** Containers of the namespace that hold the device or held it just before, with times. */
  readonly held: readonly IncidentHolder[];
}

/** Undefined when the incident hit no pod of the namespace. */
function partOf(record: IncidentRecord, namespace: string): NamespaceIncident | undefined {
  const held = holdersHit(record).filter((holder) => holder.namespace === namespace);
  if (held.length === 0) return undefined;
  const remedies = [...(record.after.conditions ?? []), ...record.changes].map(({ remedy }) => remedy);
  const { id, time, device, states, conditions, holders } = summaryOf({ ...record, holders: held });
  return {
    ...{ id, time, device, states, conditions, holders },
    remedies: [...new Set(remedies)].filter((remedy) => remedy !== 'none'),
    held: held.map(({ pod, container, resource, deviceId, uid, since, until }) => ({
      ...{ namespace, pod, container, resource, deviceId, since },
      ...defined({ uid, until }),
    })),
  };
}

interface Records {
  list(): readonly { readonly id: string }[];
  read(id: string): Promise<RecordRead | undefined>;
}

/** Incidents that hit pods of the namespace, the newest first. `unread`: records that could not be read, so whom they hit is unknown. */
export async function incidentsOf(
  records: Records,
  namespace: string,
): Promise<{ readonly found: readonly NamespaceIncident[]; readonly unread: number }> {
  const found: NamespaceIncident[] = [];
  let unread = 0;
  for (const { id } of records.list()) {
    const read = await records.read(id);
    // It is not kept any more.
    if (read === undefined) continue;
    if (read.problem !== undefined) {
      unread += 1;
      continue;
    }
    const view = partOf(read.record, namespace);
    if (view !== undefined) found.push(view);
  }
  return { found, unread };
}
