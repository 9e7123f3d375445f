import type { SourceFindings } from '../../model/device-record.ts';
import { areSameFindings, type Finding, type Verdict } from '../../model/health.ts';
import type { HealthPolicy } from '../policy/policy.ts';
import { isEmpty } from './conditions.ts';
import { type DeviceJudgement, type HealthInput, judgeDevice } from './judge-device.ts';
import type { DeviceMemory } from './memory.ts';

/** A device for which nothing holds, counts or waits. Only what it reports and the age of its read can change its verdict. */
interface Quiet {
  readonly verdict: Verdict;
  readonly policy: HealthPolicy;
  /** What it was judged by. */
  readonly reported: Reported;
  /** The latest input with the same report, and its time. The memory does not have it yet. */
  readonly latest?: { readonly input: HealthInput; readonly nowMs: number };
}

interface Reported extends Pick<HealthInput, 'device' | 'lastHolders'> {
  /** Of each source, and whether they were not too old. */
  readonly findings: readonly (readonly Finding[] | undefined)[];
  readonly fresh: readonly boolean[];
}

const SOURCES = ['read', 'outOfBand', 'use', 'repeats'] as const;

/**
 * Devices that are not judged again while they report the same. The memory of such a device lacks the times of the reads since then. Whoever
 * needs it calls {@link settled}, which judges by the latest read alone: of a time without change, only the begin and the end matter.
 */
export class QuietDevices {
  #kept = new Map<DeviceMemory, Quiet>();
  #next = new Map<DeviceMemory, Quiet>();

  /** The verdict of before; undefined when the device must be judged. `memory`: of the judgement before. */
  judged(memory: DeviceMemory | undefined, input: HealthInput, policy: HealthPolicy, nowMs: number): DeviceJudgement | undefined {
    const quiet = memory && this.#kept.get(memory);
    if (memory === undefined || quiet === undefined || quiet.policy !== policy || !isSame(quiet.reported, input, policy, nowMs))
      return undefined;
    this.#next.set(memory, { ...quiet, latest: { input, nowMs } });
    return { memory, verdict: quiet.verdict, events: [], dueMs: staleAtMs(input.read as SourceFindings, policy) };
  }

  /** Remembers a device that was judged. */
  keep(judged: DeviceJudgement, input: HealthInput, policy: HealthPolicy, nowMs: number): void {
    const { memory, verdict, events } = judged;
    const { conditions, activations, wasRead } = memory;
    const isRead = input.read !== undefined && input.isUnread !== true && isFresh(input.read, policy, nowMs);
    const isKnown = isRead && wasRead === true && input.missingSinceMs === undefined && input.device.identity !== null;
    const isQuiet = isEmpty(conditions) && isEmpty(activations) && events.length === 0;
    if (!isKnown || !isQuiet || verdict.state === 'unhealthy') return;
    const { device, lastHolders } = input;
    const findings = SOURCES.map((source) => input[source]?.findings);
    const fresh = SOURCES.map((source) => isFresh(input[source], policy, nowMs));
    this.#next.set(memory, { verdict, policy, reported: { device, lastHolders, findings, fresh } });
  }

  /** Ends a judgement: devices that were neither judged nor quiet are forgotten. */
  end(): void {
    [this.#kept, this.#next] = [this.#next, new Map()];
  }

  /** The memory as if each read had been judged. */
  settled(memory: DeviceMemory): DeviceMemory {
    const quiet = this.#kept.get(memory);
    if (quiet?.latest === undefined) return memory;
    const { input, nowMs } = quiet.latest;
    const { verdict, policy, reported } = quiet;
    const { memory: next } = judgeDevice(memory, input, policy, { nowMs, elapsedMs: 0 });
    this.#kept.delete(memory);
    this.#kept.set(next, { verdict, policy, reported });
    return next;
  }
}

function isSame({ device, lastHolders, findings, fresh }: Reported, input: HealthInput, policy: HealthPolicy, nowMs: number): boolean {
  if (input.device !== device || input.lastHolders !== lastHolders || input.isUnread === true || input.missingSinceMs !== undefined)
    return false;
  for (let at = 0; at < SOURCES.length; at += 1) {
    const source = input[SOURCES[at] as (typeof SOURCES)[number]];
    if (isFresh(source, policy, nowMs) !== fresh[at] || !areSameFindings(source?.findings, findings[at])) return false;
  }
  return true;
}

const isFresh = (source: SourceFindings | undefined, policy: HealthPolicy, nowMs: number): boolean =>
  source !== undefined && nowMs < staleAtMs(source, policy);

const staleAtMs = ({ readAtMs }: SourceFindings, { staleAfterMs }: HealthPolicy): number => readAtMs + staleAfterMs;
