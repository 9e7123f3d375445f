import { useFindings } from '../../health/occupancy/findings.ts';
import type { HeldRecord, JudgedRecord, ReadTimes, SourceFindings, UsedRecord } from '../../model/device-record.ts';
import type { DeviceUse, UseLimits } from '../../model/device-use.ts';
import type { Verdict } from '../../model/health.ts';
import type { Occupancy } from '../use.ts';

const NO_OCCUPANCY: Occupancy = { lastHolders: undefined, occupancy: undefined };

/** Adds what the devices do, compared with their holders. `occupancies` are keyed by device key. */
export function usedRecords(
  held: readonly HeldRecord[],
  occupancies: ReadonlyMap<string, Occupancy> | undefined,
  limits: UseLimits,
): readonly UsedRecord[] {
  return held.map((record) => {
    const { key, current } = record;
    const { lastHolders, occupancy } = occupancies?.get(key) ?? NO_OCCUPANCY;
    const use = occupancy && useOf(occupancy, current as ReadTimes, limits);
    return Object.assign(record, { lastHolders, occupancy, use });
  });
}

const useOf = (occupancy: DeviceUse, { readAtMs, monotonicMs }: ReadTimes, limits: UseLimits): SourceFindings => ({
  findings: useFindings(occupancy, limits),
  readAtMs,
  monotonicMs,
});

const UNJUDGED: Verdict = { state: 'unknown', sinceMs: 0, conditions: [] };

export const judgedRecords = (used: readonly UsedRecord[], verdicts: ReadonlyMap<string, Verdict>): readonly JudgedRecord[] =>
  used.map((record) => Object.assign(record, { verdict: verdicts.get(record.key) ?? UNJUDGED }));
