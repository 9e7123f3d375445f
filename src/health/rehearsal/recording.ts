import type { EventHolder } from '../../model/events.ts';
import type { Finding } from '../../model/health.ts';
import type { DeviceMemory } from '../engine/memory.ts';
import type { RecordedEvent, RecordedIdentity } from '../journal/findings-record.ts';

/** Findings of one source, as they were at one judgement. */
export interface RecordedSource {
  /** Keyed as in the journal. */
  readonly findings: ReadonlyMap<string, Finding>;
  /** Steady time of the reading; absent when the clock of the family gives it. */
  readonly fixedMs?: number;
}

/** Input of the engine for one device. Immutable. */
export interface RecordedInput {
  readonly device: RecordedIdentity;
  /** Wall clock. */
  readonly missingSinceMs?: number;
  readonly isUnread: boolean;
  /** Steady time. */
  readonly awaitedMs?: number;
  readonly holders: readonly EventHolder[];
  /** Keyed by the name of the source. */
  readonly sources: ReadonlyMap<string, RecordedSource>;
}

export interface RecordedChange {
  /** Index of the judgement. */
  readonly tick: number;
  /** Undefined when the device was no longer listed. */
  readonly input: RecordedInput | undefined;
}

/** Steady times of the readings that renewed a clock; the same index belongs together. */
export interface ClockReadings {
  readonly ticks: number[];
  readonly times: number[];
}

/** Judgements without a break in the record. */
export interface Stretch {
  /** Indexes of the first and the last judgement. */
  readonly first: number;
  readonly last: number;
  /** The agent began without the memory of an earlier run. */
  readonly isFresh: boolean;
}

/**
 * What the journal says about the past. Steady time is the wall clock at the first judgement plus the time that elapsed: it never steps.
 */
export interface Recording {
  /** Steady time of each judgement. */
  readonly ticks: readonly number[];
  readonly stretches: readonly Stretch[];
  /** Wall clock minus steady time, from a judgement on. */
  readonly offsets: readonly { readonly tick: number; readonly ms: number }[];
  /** Keyed by family and source. */
  readonly clocks: ReadonlyMap<string, ClockReadings>;
  /** Keyed by device key. */
  readonly devices: ReadonlyMap<string, readonly RecordedChange[]>;
  /** What the engine remembered at the first judgement, keyed by device key. */
  readonly memory: ReadonlyMap<string, Omit<DeviceMemory, 'device'>>;
  readonly events: readonly { readonly tick: number; readonly event: RecordedEvent }[];
  /** Digests of the policies that judged. */
  readonly policies: readonly { readonly tick: number; readonly digest: string }[];
  /** Records that were damaged or lost. */
  readonly brokenRecords: number;
}

/** Wall clock at a steady time near a judgement. */
export function wallClock({ offsets }: Pick<Recording, 'offsets'>, tick: number, steadyMs: number): number {
  let ms = 0;
  for (const offset of offsets) {
    if (offset.tick > tick) break;
    ms = offset.ms;
  }
  return steadyMs + ms;
}

/** Times between two judgements that are at least `leastMs` apart: no agent looked. Steady time. */
export function gapsOf(
  { ticks }: Pick<Recording, 'ticks'>,
  leastMs: number,
): readonly { readonly fromMs: number; readonly toMs: number }[] {
  const gaps: { fromMs: number; toMs: number }[] = [];
  for (let at = 1; at < ticks.length; at++) {
    const [fromMs, toMs] = [ticks[at - 1] as number, ticks[at] as number];
    if (toMs - fromMs >= leastMs) gaps.push({ fromMs, toMs });
  }
  return gaps;
}
