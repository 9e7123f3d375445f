/** A rule of a vendor that tells the source among faults of devices that share a fabric or a card. */
export interface RootCauseRule {
  /** Codes of faults that a device reports of itself. */
  readonly sources: readonly string[];
  /** Codes of faults that a device can report although another one failed. */
  readonly victims: readonly string[];
  /** Longest time between the two, in either order: several processors write the log. */
  readonly withinMs: number;
  /** Where the rule comes from. */
  readonly from: string;
}

/** A fault of one device. */
export interface DatedFault {
  readonly device: string;
  readonly code: string;
  /** Absent when its time is unknown: then no rule joins it with another fault. */
  readonly atMs?: number | undefined;
  readonly isFatal: boolean;
  /** It has not ended. Until then it explains later faults of others, too. */
  readonly isOpen: boolean;
}

/**
 * The source of each victim. A fatal source goes before one that is not fatal, then the first in time. A device that is itself a source
 * is nobody's victim, and a fault that is fatal only follows from a fatal one. Pure.
 */
export function rootCauses<F extends DatedFault>(rules: readonly RootCauseRule[], faults: readonly F[]): ReadonlyMap<F, F> {
  const found = new Map<F, F>();
  for (const { sources, victims, withinMs } of rules) {
    const causes = faults.filter(({ code }) => sources.includes(code)).sort(firstOf);
    const own = new Set(causes.map(({ device }) => device));
    for (const fault of faults) {
      if (!victims.includes(fault.code) || own.has(fault.device) || found.has(fault)) continue;
      const cause = causes.find((one) => (one.isFatal || !fault.isFatal) && isNear(one, fault, withinMs));
      if (cause !== undefined) found.set(fault, cause);
    }
  }
  return found;
}

const firstOf = (a: DatedFault, b: DatedFault): number => Number(b.isFatal) - Number(a.isFatal) || (a.atMs ?? 0) - (b.atMs ?? 0);

function isNear(cause: DatedFault, { atMs }: DatedFault, withinMs: number): boolean {
  if (cause.atMs === undefined || atMs === undefined) return false;
  const laterMs = atMs - cause.atMs;
  return laterMs >= -withinMs && (cause.isOpen || laterMs <= withinMs);
}
