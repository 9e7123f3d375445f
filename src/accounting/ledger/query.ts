import { formatDuration, hours, type Millis, parseDuration } from '../../model/duration.ts';

export const GROUPINGS = ['namespace', 'pod', 'device', 'resource'] as const;

/** By what a report groups accounts. `label:NAME` is a label of the pod. */
export type Grouping = (typeof GROUPINGS)[number] | `label:${string}`;

export interface UsageQuery {
  /** Length of the time that the report covers, up to now. */
  readonly since: Millis;
  readonly by: Grouping;
}

export type ParsedQuery =
  | { readonly query: UsageQuery; readonly problem?: undefined }
  | { readonly query?: undefined; readonly problem: string };

export const DEFAULT_SINCE = hours(24);
const LONGEST = hours(24 * 3_650);

/** Checks the texts of a query. A problem is a sentence without a subject: "since must be …". */
export function parseQuery({ since, by }: { readonly since?: unknown; readonly by?: unknown }): ParsedQuery {
  const duration = since === undefined ? DEFAULT_SINCE : typeof since === 'string' ? parseDuration(since) : undefined;
  if (duration === undefined || duration <= 0 || duration > LONGEST) {
    return { problem: `since must be a time such as 24h or 7d, and ${formatDuration(LONGEST)} at most` };
  }
  const grouping = by ?? 'namespace';
  if (!isGrouping(grouping)) return { problem: `by must be one of ${GROUPINGS.join(', ')} or label:NAME` };
  return { query: { since: duration, by: grouping } };
}

const isGrouping = (value: unknown): value is Grouping =>
  typeof value === 'string' && ((GROUPINGS as readonly string[]).includes(value) || /^label:[\w./-]{1,317}$/.test(value));
