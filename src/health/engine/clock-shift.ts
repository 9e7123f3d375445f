import { CLOCK_STEP_MS, wallClockOf } from '../../model/clock-step.ts';
import { defined } from '../../model/defined.ts';
import type { SourceFindings } from '../../model/device-record.ts';
import type { HealthInput } from './judge-device.ts';
import { type HealthMemory, NOTHING, shifted } from './memory.ts';

/** Distinguishes elapsed time from a step of the wall clock. */
export interface ClockShift {
  /** Whether the wall clock was set after the last judgement. */
  isStep(memory: HealthMemory, nowMs: number, given: { readonly monotonicMs?: number }): boolean;
  /** Shifts the remembered times when the wall clock was set after the last judgement. */
  adjust(memory: HealthMemory, nowMs: number, given: { readonly monotonicMs?: number }): HealthMemory;
  /** Converts the times of a device to the present wall clock, so that a reading from before a clock step keeps its age. */
  withTimes(device: HealthInput): HealthInput;
}

export function createClockShift(): ClockShift {
  let monotonic: number | undefined;
  let wallMs = 0;
  let hasStepped = false;
  /** Sum of all steps of the wall clock since the first judgement. */
  let stepsMs = 0;
  const withTime = (source: SourceFindings): SourceFindings => {
    if (monotonic === undefined) return source;
    const readAtMs = wallClockOf(source.readAtMs, source.monotonicMs, { nowMs: wallMs, monotonicMs: monotonic });
    return readAtMs === source.readAtMs ? source : { ...source, readAtMs };
  };
  const stepOf = (memory: HealthMemory, nowMs: number, monotonicMs: number | undefined): number => {
    if (monotonic === undefined || monotonicMs === undefined || memory === NOTHING) return 0;
    return nowMs - memory.judgedAtMs - (monotonicMs - monotonic);
  };
  return {
    isStep: (memory, nowMs, { monotonicMs }) => Math.abs(stepOf(memory, nowMs, monotonicMs)) > CLOCK_STEP_MS,
    adjust(memory, nowMs, { monotonicMs }) {
      const stepMs = stepOf(memory, nowMs, monotonicMs);
      monotonic = monotonicMs;
      wallMs = nowMs;
      if (Math.abs(stepMs) <= CLOCK_STEP_MS) return memory;
      hasStepped = true;
      stepsMs += stepMs;
      return shifted(memory, stepMs);
    },
    withTimes(device) {
      if (!hasStepped) return device;
      const { read, outOfBand, use, repeats, awaitedSinceMs } = device;
      return {
        ...device,
        ...defined({
          read: read && withTime(read),
          outOfBand: outOfBand && withTime(outOfBand),
          use: use && withTime(use),
          repeats: repeats && withTime(repeats),
        }),
        ...(awaitedSinceMs === undefined ? {} : { awaitedSinceMs: awaitedSinceMs + stepsMs }),
      };
    },
  };
}
