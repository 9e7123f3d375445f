import { createHealthEngine, type HealthEngine } from '../health/engine.ts';
import { createJournal, type Journal } from '../health/journal.ts';
import { createPolicy, type HealthPolicy } from '../health/policy.ts';
import type { Clock } from '../host/clock.ts';
import type { Logger } from '../log/logger.ts';
import { formatDuration } from '../model/duration.ts';
import type { HealthEvent } from '../model/events.ts';
import type { Verdict } from '../model/health.ts';
import type { Judge, Judged } from './assemble.ts';
import type { AgentSettings } from './settings.ts';

/** The health engine with its policy, its log lines and its sense of time. */
export class HealthKeeper {
  readonly policy: HealthPolicy;
  readonly engine: HealthEngine;
  readonly #journal: Journal;
  readonly #clock: Clock;
  readonly #lookAgain: () => void;
  #cancelCheck: (() => void) | undefined;

  /** `lookAgain` is called when a verdict can change by time alone. */
  constructor(settings: AgentSettings, logger: Logger, clock: Clock, lookAgain: () => void) {
    const { policy, problems } = createPolicy({
      specs: Object.fromEntries(settings.families.map(({ family }) => [family.name, family.conditions])),
      config: { 'stale-after': formatDuration(settings.refresh['stale-after']), ...settings.health },
      missingRetentionMs: settings.device['missing-retention'],
    });
    for (const problem of problems) logger.warn('part of the health policy is not used', { problem });
    this.policy = policy;
    this.engine = createHealthEngine({ policy });
    this.#journal = createJournal({ engine: this.engine, announced: (event) => tell(logger, event) });
    this.#clock = clock;
    this.#lookAgain = lookAgain;
  }

  readonly judge: Judge = (devices: readonly Judged[], nowMs: number): ReadonlyMap<string, Verdict> => {
    const judgement = this.engine.judge({ devices, monotonicMs: this.#clock.monotonic() }, nowMs);
    void this.#journal.record(judgement, nowMs);
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
    if (judgement.nextCheckMs !== undefined) this.#cancelCheck = this.#clock.after(judgement.nextCheckMs - nowMs, this.#lookAgain);
    return judgement.verdicts;
  };

  async close(): Promise<void> {
    this.#cancelCheck?.();
    await this.#journal.close();
  }
}

function tell(logger: Logger, event: HealthEvent): void {
  const { transition, device, severity, ignored, timeMs: _, ...fields } = event;
  const isGood = transition === 'cleared' || event.to === 'healthy';
  const line = isGood || severity === 'info' || ignored === true ? logger.info : logger.warn;
  line(transition === 'state' ? 'health of a device changed' : `a condition was ${transition}`, { device, ...fields });
}
