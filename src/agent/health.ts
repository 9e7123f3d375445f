import { createHealthEngine, type HealthEngine } from '../health/engine.ts';
import { createJournal, type Journal } from '../health/journal.ts';
import type { JudgedDevice } from '../health/judge-device.ts';
import type { HealthMemory } from '../health/memory.ts';
import type { HealthPolicy } from '../health/policy.ts';
import { createStateFile, type StateFile } from '../health/state-file.ts';
import type { Clock } from '../host/clock.ts';
import { Tree } from '../host/tree.ts';
import { createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import type { HealthEvent } from '../model/events.ts';
import type { Verdict } from '../model/health.ts';
import type { Judge, KnownDevice } from './assemble.ts';
import { healthPolicy } from './health-policy.ts';
import type { Judged } from './judged.ts';
import { PatientAlarm } from './patient-alarm.ts';
import type { AgentSettings } from './settings.ts';

/** The health engine with its policy, its memory on disk, its log lines and its sense of time. */
export class HealthKeeper {
  readonly policy: HealthPolicy;
  readonly engine: HealthEngine;
  readonly #journal: Journal;
  readonly #clock: Clock;
  #lookAgain = (): void => {};
  readonly #check: PatientAlarm;

  private constructor(policy: HealthPolicy, engine: HealthEngine, journal: Journal, clock: Clock) {
    this.policy = policy;
    this.engine = engine;
    this.#journal = journal;
    this.#clock = clock;
    this.#check = new PatientAlarm(clock, () => this.#lookAgain());
  }

  /** Reads what an earlier run of this boot left. `isLasting` is false for one reading, which leaves nothing behind. */
  static async open(settings: AgentSettings, logger: Logger, clock: Clock, isLasting: boolean): Promise<HealthKeeper> {
    const policy = policyOf(settings, logger);
    const path = isLasting ? settings.state.file : '';
    const file = path === '' ? undefined : createStateFile({ path, bootId: bootIdOf(settings) });
    const state = await rememberedState(file, path, logger);
    const engine = createHealthEngine({ policy, ...(state === undefined ? {} : { state }) });
    const changes = createChangeLog(logger);
    const journal = createJournal({
      engine,
      clock,
      announced: (event) => tell(logger, event),
      ...(file === undefined ? {} : { file }),
      written: (error) =>
        changes.update(
          'state',
          error === undefined ? [] : [{ key: path, message: 'the health state cannot be kept over a restart', fields: { path, error } }],
        ),
    });
    return new HealthKeeper(policy, engine, journal, clock);
  }

  /** Devices that an earlier run knew, of the families that this one reads. */
  known(): readonly KnownDevice[] {
    const known = this.engine.knownDevices().filter(({ device }) => this.policy.specs.has(device.family));
    return known.map(({ readAtMs = 0, ...device }) => ({ ...device, readAtMs }));
  }

  /** The probe of that family was started anew. */
  renewed(family: string): void {
    this.engine.renewed(family);
  }

  /** `look` is called when a verdict can change by time alone. */
  onDue(look: () => void): void {
    this.#lookAgain = look;
  }

  readonly judge: Judge = (devices: readonly Judged[], nowMs: number): ReadonlyMap<string, Verdict> => {
    const judgement = this.engine.judge(
      {
        devices: devices.some(({ awaitedSinceMs }) => awaitedSinceMs !== undefined) ? devices.map(brought) : devices,
        monotonicMs: this.#clock.monotonic(),
      },
      nowMs,
    );
    void this.#journal.record(judgement, nowMs);
    if (judgement.nextCheckMs === undefined) this.#check.unset();
    else this.#check.set(judgement.nextCheckMs - nowMs);
    return judgement.verdicts;
  };

  async close(): Promise<void> {
    this.#check.close();
    await this.#journal.close();
  }
}

/** Without the time of a reading there is nothing to judge by, and everything that was known is kept. */
function brought(judged: Judged): JudgedDevice {
  if (judged.awaitedSinceMs === undefined) return judged;
  const { readAtMs: _, ...device } = judged;
  return device;
}

function policyOf(settings: AgentSettings, logger: Logger): HealthPolicy {
  const { policy, problems } = healthPolicy(settings);
  for (const problem of problems) logger.warn('the health policy does not say what it seems to say', { problem });
  return policy;
}

/** What is judged belongs to one boot: a reboot is the remedy of many latched conditions. */
function bootIdOf(settings: AgentSettings): string {
  return new Tree(settings.roots.procfs).text('sys/kernel/random/boot_id') ?? 'unknown';
}

async function rememberedState(file: StateFile | undefined, path: string, logger: Logger): Promise<HealthMemory | undefined> {
  const read = await file?.read();
  if (read?.ignored !== undefined && read.ignored !== 'absent') {
    logger.warn('the kept health state is not used', { path, reason: read.ignored, detail: read.message });
  }
  return read?.state;
}

function tell(logger: Logger, event: HealthEvent): void {
  // Two fields of a line cannot both be called message.
  const { transition, device, severity, ignored, message: detail, timeMs: _, ...fields } = event;
  const isGood = transition === 'cleared' || event.to === 'healthy';
  const line = isGood || severity === 'info' || ignored === true ? logger.info : logger.warn;
  line(transition === 'state' ? 'health of a device changed' : `a condition was ${transition}`, { device, ...fields, detail });
}
