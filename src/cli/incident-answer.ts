import type { ListedIncident } from '../incidents/record.ts';

/** Returns the list in an answer of the API; undefined when another program, or an older agent, answered. */
export function incidentsIn(body: unknown): readonly ListedIncident[] | undefined {
  const list = (body as { readonly incidents?: unknown } | undefined | null)?.incidents;
  const isListed = (one: Partial<ListedIncident>): boolean =>
    [one.id, one.time, one.device].every((text) => typeof text === 'string') &&
    [one.states, one.conditions, one.holders].every(Array.isArray);
  return Array.isArray(list) && list.every(isListed) ? list : undefined;
}
