import type { IncidentSummary } from './record.ts';

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
