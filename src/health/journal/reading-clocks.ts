import type { SourceFindings } from '../../model/device-record.ts';
import type { HealthInput } from '../engine/judge-device.ts';
import { sourcesOf } from './findings-change.ts';

/** A smaller difference between the clocks is drift. */
const CLOCK_STEP_MS = 1_000;

export interface ClockTime {
  readonly nowMs: number;
  readonly monotonicMs: number;
  /** Sum of all steps of the wall clock in this run. Times without them never step. */
  readonly stepsMs: number;
}

/**
 * The times of the latest readings, one clock for each source of each family. Nearly all devices of a family have the time of its clock,
 * so the journal writes one number for all of them.
 */
export class ReadingClocks {
  readonly #names: string[] = [];
  readonly #times = new Map<string, number>();

  /** Names in the order of their numbers. */
  get names(): readonly string[] {
    return this.#names;
  }

  /** Takes the times of all readings. Returns the age of each clock that moved, as pairs of an age and a set of clocks. */
  advance(devices: readonly HealthInput[], time: ClockTime): readonly number[] {
    const moved = new Map<string, number>();
    for (const judged of devices) {
      for (const [source, findings] of sourcesOf(judged)) {
        const name = clockName(judged, source);
        const atMs = steadyTime(findings, time);
        const known = moved.get(name) ?? this.#times.get(name) ?? Number.NEGATIVE_INFINITY;
        // A new run of a probe is later by much more than the rounding of times.
        if (atMs > known + 1) moved.set(name, atMs);
      }
    }
    const clocksByAge = new Map<number, number>();
    for (const [name, atMs] of moved) {
      if (!this.#times.has(name)) this.#names.push(name);
      this.#times.set(name, atMs);
      const age = time.nowMs - time.stepsMs - atMs;
      clocksByAge.set(age, (clocksByAge.get(age) ?? 0) + 2 ** this.#names.indexOf(name));
    }
    return [...clocksByAge].flat();
  }

  /** Wall clock of each source that other devices of the family have left behind. */
  fixed(judged: HealthInput, time: ClockTime): Readonly<Record<string, number>> {
    const left: Record<string, number> = {};
    for (const [source, findings] of sourcesOf(judged)) {
      const behindMs = (this.#times.get(clockName(judged, source)) as number) - steadyTime(findings, time);
      if (behindMs > 1) left[source] = findings.readAtMs;
    }
    return left;
  }
}

export const clockName = ({ device }: Pick<HealthInput, 'device'>, source: string): string => `${device.family}/${source}`;

/** Time of a reading without the steps of the wall clock. */
function steadyTime({ readAtMs: atMs, monotonicMs }: SourceFindings, time: ClockTime): number {
  if (monotonicMs === undefined) return atMs - time.stepsMs;
  const presentMs = time.nowMs - (time.monotonicMs - monotonicMs);
  return (Math.abs(presentMs - atMs) > CLOCK_STEP_MS ? Math.round(presentMs) : atMs) - time.stepsMs;
}
