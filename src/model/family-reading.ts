import { defined } from './defined.ts';
import type { FamilyState } from './snapshot.ts';

/** How far a family of devices was read since the machine booted. Plain data, as the API and the health feed send it. */
export interface FamilyReading {
  readonly family: string;
  /** A read that could reach all of the family has ended. Without one, devices may exist that nobody has seen. */
  readonly complete: boolean;
  /** Code of the problem that prevents such a read; absent while no read has ended, and when there is none. */
  readonly problem?: string;
  /** Ids of devices that were out of service when they were last listed, and that no read has listed since. */
  readonly unreturned?: readonly string[];
}

export function familyReading({ family, readCompletely = false, unreturned, problems }: FamilyState): FamilyReading {
  const problem = readCompletely ? undefined : problems.find(({ code }) => code !== 'expected-missing')?.code;
  return {
    family,
    complete: readCompletely,
    ...defined({ problem }),
    ...(unreturned === undefined || unreturned.length === 0 ? {} : { unreturned }),
  };
}

/** Returns the families of an answer of the agent; undefined when it does not tell them, as an older agent does not. */
export function familyReadingsIn(body: unknown): readonly FamilyReading[] | undefined {
  const families = (body as { readonly families?: unknown } | undefined | null)?.families;
  return Array.isArray(families) && families.every(isFamilyReading) ? families : undefined;
}

function isFamilyReading(value: unknown): value is FamilyReading {
  const { family, complete, problem, unreturned = [] } = (value ?? {}) as Partial<FamilyReading>;
  const isText = (one: unknown): boolean => typeof one === 'string';
  return (
    isText(family) &&
    typeof complete === 'boolean' &&
    ['string', 'undefined'].includes(typeof problem) &&
    Array.isArray(unreturned) &&
    unreturned.every(isText)
  );
}

/** The same text for the same state: a client that stores it has nothing to write. */
export const unreadText = (families: readonly FamilyReading[]): string =>
  `not read completely since the boot: ${families.map(({ family, problem }) => (problem === undefined ? family : `${family} (${problem})`)).join(', ')}`;
