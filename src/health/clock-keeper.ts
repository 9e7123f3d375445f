import type { JudgedDevice } from './judge-device.ts';
import { type HealthMemory, NOTHING, shifted } from './memory.ts';

/** Smaller differences between the clocks are drift. */
const CLOCK_STEP_MS = 1_000;

/** What the engine is given at one judgement, as far as time is concerned. */
interface Given {
  readonly devices: readonly JudgedDevice[];
  readonly monotonicMs?: number;
}

/** Tells time that passed from a wall clock that was set. */
export interface ClockKeeper {
  /** Moves what is remembered when the wall clock was set since the last judgement. */
  adjust(memory: HealthMemory, nowMs: number, given: Given): HealthMemory;
  /** A reading made before the clock was set keeps its age, judged before or not, and so does the wait for one. */
  withTimes(device: JudgedDevice, knownReadAtMs: () => number | undefined): JudgedDevice;
  /** Whether time passed otherwise than from one judgement to the next: backwards, by a step, or unwatched for long. */
  isIrregular(memory: HealthMemory, nowMs: number, monotonicMs: number | undefined, longMs: number): boolean;
}

export function createClockKeeper(): ClockKeeper {
  let monotonic: number | undefined;
  let wallMs = 0;
  let stepped = false;
  /** By how much it was set since the first judgement, all in all. */
  let stepsMs = 0;
  let given: readonly JudgedDevice[] = [];
  let givenBefore: readonly JudgedDevice[] = [];
  /** Of `givenBefore`, made when it is needed: clocks are hardly ever set. */
  let previouslySeen: ReadonlyMap<string, number | undefined> | undefined;
  const stepOf = (memory: HealthMemory, nowMs: number, monotonicMs: number | undefined): number =>
    monotonic === undefined || monotonicMs === undefined ? 0 : nowMs - memory.judgedAtMs - (monotonicMs - monotonic);
  const seenBefore = (key: string): number | undefined => {
    previouslySeen ??= new Map(givenBefore.map((device) => [device.key, device.readAtMs]));
    return previouslySeen.get(key);
  };
  /** Of a reading that was not judged yet. */
  const nowKnownAs = (readAtMs: number, readMonotonicMs: number | undefined): number => {
    if (monotonic === undefined || readMonotonicMs === undefined) return readAtMs;
    const atMs = wallMs - (monotonic - readMonotonicMs);
    return Math.abs(atMs - readAtMs) > CLOCK_STEP_MS ? atMs : readAtMs;
  };
  return {
    adjust(memory, nowMs, { devices, monotonicMs }) {
      givenBefore = given;
      given = devices;
      previouslySeen = undefined;
      const stepMs = stepOf(memory, nowMs, monotonicMs);
      monotonic = monotonicMs;
      wallMs = nowMs;
      const isStep = memory !== NOTHING && Math.abs(stepMs) > CLOCK_STEP_MS;
      if (!isStep) return memory;
      stepped = true;
      stepsMs += stepMs;
      return shifted(memory, stepMs);
    },
    isIrregular(memory, nowMs, monotonicMs, longMs) {
      const gapMs = nowMs - memory.judgedAtMs;
      return gapMs < 0 || gapMs >= longMs || Math.abs(stepOf(memory, nowMs, monotonicMs)) > CLOCK_STEP_MS;
    },
    withTimes(device, knownReadAtMs) {
      const { key, readAtMs, readMonotonicMs, awaitedSinceMs } = device;
      if (stepped && awaitedSinceMs !== undefined) return { ...device, awaitedSinceMs: awaitedSinceMs + stepsMs };
      if (!stepped || readAtMs === undefined) return device;
      const atMs = seenBefore(key) === readAtMs ? knownReadAtMs() : nowKnownAs(readAtMs, readMonotonicMs);
      return atMs === undefined ? device : { ...device, readAtMs: atMs };
    },
  };
}
