import type { JudgedDevice, SourceFindings } from './judge-device.ts';
import { type HealthMemory, NOTHING, shifted } from './memory.ts';

/** Smaller differences between the clocks are drift. */
const CLOCK_STEP_MS = 1_000;

/** Tells time that passed from a wall clock that was set. */
export interface ClockKeeper {
  /** Moves what is remembered when the wall clock was set since the last judgement. */
  adjust(memory: HealthMemory, nowMs: number, given: { readonly monotonicMs?: number }): HealthMemory;
  /** The times of a device by the wall clock of now: a look that was made before the clock was set keeps its age. */
  withTimes(device: JudgedDevice): JudgedDevice;
}

export function createClockKeeper(): ClockKeeper {
  let monotonic: number | undefined;
  let wallMs = 0;
  let hasStepped = false;
  /** By how much the wall clock was set since the first judgement, all in all. */
  let stepsMs = 0;
  const withTime = (told: SourceFindings): SourceFindings => {
    if (monotonic === undefined || told.monotonicMs === undefined) return told;
    const atMs = wallMs - (monotonic - told.monotonicMs);
    return Math.abs(atMs - told.atMs) > CLOCK_STEP_MS ? { ...told, atMs } : told;
  };
  return {
    adjust(memory, nowMs, { monotonicMs }) {
      const isFirst = monotonic === undefined || monotonicMs === undefined || memory === NOTHING;
      const stepMs = isFirst ? 0 : nowMs - memory.judgedAtMs - ((monotonicMs as number) - (monotonic as number));
      monotonic = monotonicMs;
      wallMs = nowMs;
      if (Math.abs(stepMs) <= CLOCK_STEP_MS) return memory;
      hasStepped = true;
      stepsMs += stepMs;
      return shifted(memory, stepMs);
    },
    withTimes(device) {
      if (!hasStepped) return device;
      const { read, aside, awaitedSinceMs } = device;
      return {
        ...device,
        ...(read === undefined ? {} : { read: withTime(read) }),
        ...(aside === undefined ? {} : { aside: withTime(aside) }),
        ...(awaitedSinceMs === undefined ? {} : { awaitedSinceMs: awaitedSinceMs + stepsMs }),
      };
    },
  };
}
