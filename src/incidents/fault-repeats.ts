import type { FaultRepeat, SavedRepeat } from '../model/fault.ts';
import type { TimesFinding } from '../model/health.ts';
import { memoizedBy } from '../model/readings.ts';

/** No rule looks further back. */
const LONGEST_MS = 7 * 86_400_000;
/** Times of one condition, and conditions of one device, that are remembered. */
const MOST_TIMES = 64;
const MOST_REPEATS = 64;

/** What is known of a device after one more fault. Pure. */
export function withRepeat(known: readonly SavedRepeat[] = [], repeat: FaultRepeat, atMs: number): readonly SavedRepeat[] {
  const { distinct = '', burstMs, ...told } = repeat;
  const { type, instance } = told;
  const before = known.find((one) => one.type === type && one.instance === instance);
  const seen = (before?.seen ?? []).filter(([time, other]) => {
    const isSame = distinct !== '' && other === distinct;
    const isBurst = burstMs !== undefined && other === distinct && Math.abs(atMs - time) <= burstMs;
    return !isSame && !isBurst && Math.abs(atMs - time) <= LONGEST_MS;
  });
  const times = [...seen, [atMs, distinct] as const].sort(([a], [b]) => a - b).slice(-MOST_TIMES);
  return [...known.filter((one) => one !== before), { ...told, seen: times }].slice(-MOST_REPEATS);
}

/** The findings of a device, the same objects while nothing was counted. */
export const repeatFindings = memoizedBy((known: readonly SavedRepeat[]): readonly TimesFinding[] =>
  known.map(({ seen, ...repeat }) => ({ ...repeat, times: seen.map(([atMs]) => atMs) })),
);
