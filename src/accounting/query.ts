import { formatDuration, hours, type Millis, parseDuration } from '../model/duration.ts';

export const GROUPINGS = ['namespace', 'pod', 'device', 'resource'] as const;

/** The key by which a report groups accounts. `label:NAME` is a label of the pod. */
export type Grouping = (typeof GROUPINGS)[number] | `label:${string}`;

export interface UsageQuery {
  /** Length of the time that the report covers, up to now. */
  readonly since: Millis;
  readonly by: Grouping;
  /** Only devices of this family: hours of GPUs and of adapters are not alike. Absent: all. */
  readonly family?: string;
}

export type ParsedQuery =
  | { readonly query: UsageQuery; readonly problem?: undefined }
  | { readonly query?: undefined; readonly problem: string };

export const DEFAULT_SINCE = hours(24);
const LONGEST = hours(24 * 3_650);
const FAMILY = /^[a-z][a-z0-9-]{0,63}$/;

/** Checks the texts of a query. A problem is a sentence without a subject: "since must be …". */
export function parseQuery({
  since,
  by = 'namespace',
  family,
}: Readonly<Partial<Record<'since' | 'by' | 'family', unknown>>>): ParsedQuery {
  const duration = since === undefined ? DEFAULT_SINCE : typeof since === 'string' ? parseDuration(since) : undefined;
  if (duration === undefined || duration <= 0 || duration > LONGEST) {
    return { problem: `since must be a time such as 24h or 7d, and ${formatDuration(LONGEST)} at most` };
  }
  if (!isGrouping(by)) return { problem: `by must be one of ${GROUPINGS.join(', ')} or label:NAME` };
  if (family !== undefined && !(typeof family === 'string' && FAMILY.test(family)))
    return { problem: 'family must be the name of a family' };
  return { query: { since: duration, by, ...(family !== undefined && { family }) } };
}

const isGrouping = (value: unknown): value is Grouping =>
  typeof value === 'string' && ((GROUPINGS as readonly string[]).includes(value) || /^label:[\w./-]{1,317}$/.test(value));
