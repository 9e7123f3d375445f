import type { Verdict } from '../model/health.ts';
import { type DeviceJudgement, type JudgedDevice, judgeDevice } from './judge-device.ts';
import type { DeviceMemory } from './memory.ts';
import type { HealthPolicy } from './policy.ts';

/** A device of which nothing is remembered but that all is well, and the findings that said so. */
interface Quiet {
  readonly memory: DeviceMemory;
  readonly verdict: Verdict;
  readonly report: JudgedDevice['report'];
  /** The last reading that said the same and was not judged. */
  skipped?: { readonly device: JudgedDevice; readonly nowMs: number };
}

/**
 * Spares the judging of devices that say what they said before, the same objects, while no condition holds, waits or fades: such
 * a reading changes no verdict. What it leaves in the memory, the times of counters that stood still, is made up for by judging
 * the last such reading before anything else is done with the memory.
 */
export class QuietDevices {
  readonly #policy: HealthPolicy;
  readonly #quiet = new Map<string, Quiet>();

  constructor(policy: HealthPolicy) {
    this.#policy = policy;
  }

  /** The verdict that stands and when time alone ends it; undefined when the device has to be judged. */
  verdictOn(device: JudgedDevice, memory: DeviceMemory | undefined, nowMs: number): { verdict: Verdict; dueMs: number } | undefined {
    const quiet = this.#quiet.get(device.key);
    const { report, readAtMs, missingSinceMs } = device;
    if (quiet === undefined || quiet.memory !== memory || missingSinceMs !== undefined || readAtMs === undefined) return undefined;
    if (report.findings !== quiet.report.findings || report.device !== quiet.report.device) return undefined;
    // A reading that seems to come before the last one, or from the future, comes over a clock that was set.
    if (readAtMs > nowMs || readAtMs < (this.readAtMs(device.key, memory) ?? readAtMs)) return undefined;
    const dueMs = readAtMs + this.#policy.staleAfterMs;
    if (nowMs >= dueMs) return undefined;
    quiet.skipped = { device, nowMs };
    return { verdict: quiet.verdict, dueMs };
  }

  /** Wall clock of the last reading, judged or not. */
  readAtMs(key: string, memory: DeviceMemory | undefined): number | undefined {
    return this.#quiet.get(key)?.skipped?.device.readAtMs ?? memory?.readAtMs;
  }

  /** To be called after each judging. */
  judged(device: JudgedDevice, { memory, verdict, dueMs }: DeviceJudgement): void {
    const { key, report, readAtMs } = device;
    const isQuiet =
      readAtMs !== undefined &&
      dueMs === readAtMs + this.#policy.staleAfterMs &&
      device.missingSinceMs === undefined &&
      isEmpty(memory.conditions) &&
      isEmpty(memory.activations);
    if (isQuiet) this.#quiet.set(key, { memory, verdict, report });
    else this.#quiet.delete(key);
  }

  /** The memory as if every reading had been judged. */
  caughtUp(key: string, memory: DeviceMemory | undefined): DeviceMemory | undefined {
    const quiet = this.#quiet.get(key);
    if (quiet?.skipped === undefined || quiet.memory !== memory) return memory;
    const { device, nowMs } = quiet.skipped;
    const judged = judgeDevice(memory, device, this.#policy, { nowMs, elapsedMs: 0 });
    this.judged(device, judged);
    return judged.memory;
  }

  allCaughtUp(devices: Readonly<Record<string, DeviceMemory>>): Readonly<Record<string, DeviceMemory>> {
    if (this.#quiet.size === 0) return devices;
    return Object.fromEntries(Object.entries(devices).map(([key, memory]) => [key, this.caughtUp(key, memory) as DeviceMemory]));
  }
}

function isEmpty(record: object): boolean {
  for (const _ in record) return false;
  return true;
}
