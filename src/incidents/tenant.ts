import type { Remedy } from '../model/health.ts';
import { holdersHit, type IncidentHolder, type IncidentRecord, type IncidentSummary, summaryOf } from './record.ts';
import type { RecordRead } from './record-file.ts';

/**
 * The part of an incident that a tenant may see: device, change, conditions, remedies, times and the tenant's own holders.
 * Messages, kernel lines, processes, readings, other devices and later changes are left out, because they can name or count other tenants.
 */
export interface TenantIncident extends Omit<IncidentSummary, 'hardware'> {
  /** Remedies in the order of the conditions, without `none`. */
  readonly remedies: readonly Remedy[];
  /** The tenant's containers that hold the device or held it just before, with times. */
  readonly held: readonly IncidentHolder[];
}

/** Returns the part of an incident that these namespaces may see; undefined when the incident hit none of their pods. */
export function tenantView(record: IncidentRecord, namespaces: readonly string[]): TenantIncident | undefined {
  const held = holdersHit(record).filter(({ namespace }) => namespaces.includes(namespace));
  if (held.length === 0) return undefined;
  const remedies = [...(record.after.conditions ?? []), ...record.changes].map(({ remedy }) => remedy);
  const { id, time, device, states, conditions, holders } = summaryOf({ ...record, holders: held });
  return {
    ...{ id, time, device, states, conditions, holders },
    remedies: [...new Set(remedies)].filter((remedy) => remedy !== 'none'),
    held: held.map(({ namespace, pod, container, resource, deviceId, uid, since, until }) => ({
      ...{ namespace, pod, container, resource, deviceId, since },
      ...(uid === undefined ? {} : { uid }),
      ...(until === undefined ? {} : { until }),
    })),
  };
}

interface Records {
  list(): readonly { readonly id: string }[];
  read(id: string): Promise<RecordRead | undefined>;
}

/** Incidents that hit pods of these namespaces, the newest first. `unread`: records that could not be read, so whom they hit is unknown. */
export async function incidentsOf(
  records: Records,
  namespaces: readonly string[],
): Promise<{ readonly found: readonly TenantIncident[]; readonly unread: number }> {
  const found: TenantIncident[] = [];
  let unread = 0;
  for (const { id } of records.list()) {
    const read = await records.read(id);
    // It is not kept any more.
    if (read === undefined) continue;
    if (read.problem !== undefined) {
      unread += 1;
      continue;
    }
    const view = tenantView(read.record, namespaces);
    if (view !== undefined) found.push(view);
  }
  return { found, unread };
}
