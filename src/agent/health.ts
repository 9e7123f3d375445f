import { isCalled } from '../board/name.ts';
import { createHealthEngine, type HealthEngine } from '../health/engine/engine.ts';
import type { HealthMemory } from '../health/engine/memory.ts';
import { createJournal, type Journal } from '../health/journal/journal.ts';
import { observedAfter } from '../health/journal/observed-spans.ts';
import { createStateFile, type StateFile, type StateRead } from '../health/journal/state-file.ts';
import { createPolicy, type HealthPolicy } from '../health/policy/policy.ts';
import type { Clock } from '../host/clock.ts';
import { FaultLedger } from '../incidents/fault-ledger.ts';
import { createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import type { HungStep } from '../model/collection.ts';
import { defined } from '../model/defined.ts';
import { deviceKey } from '../model/device.ts';
import type { HealthEvent, Transition } from '../model/events.ts';
import { NEVER_OBSERVED, type ObservedSpans } from '../model/observed-spans.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { AcceptAnswer, AcceptRequest } from '../server/control/control-socket.ts';
import type { Judge } from './assemble.ts';
import type { RestoredDevice } from './known-devices.ts';
import type { AgentSettings } from './settings.ts';
import { bootIdOf, StateLease } from './state.ts';

/** Connects the health engine with its policy, its state file, its log lines and its timers. */
export class HealthService {
  readonly engine: HealthEngine;
  readonly faults: FaultLedger;
  readonly #journal: Journal;
  readonly #logger: Logger;
  readonly #clock: Clock;
  #policy: HealthPolicy;
  #onDue = (): void => {};
  #onEvents = (_events: readonly HealthEvent[]): void => {};
  #beforeSave = (): Promise<void> => Promise.resolve();
  #cancelCheck = (): void => {};
  #isClosed = false;
  #written: Promise<void> = Promise.resolve();
  /** Hanging steps, keyed by family. */
  #hung: Readonly<Record<string, readonly HungStep[]>>;
  /** Families that were read completely since the machine booted. */
  #completed: readonly string[];
  #watched: ObservedSpans;
  #isFirst = true;

  private constructor({ policy, engine, faults, file, path, remembered, clock, logger, isLasting, lease }: HealthDependencies) {
    this.#policy = policy;
    this.#logger = logger;
    this.engine = engine;
    this.faults = faults;
    this.#hung = remembered?.hung ?? {};
    this.#completed = remembered?.completed ?? [];
    this.#watched = remembered?.watched ?? NEVER_OBSERVED;
    this.#clock = clock;
    const changes = createChangeLog(logger);
    this.#journal = createJournal({
      engine: {
        hasNews: () => engine.hasNews(),
        announce: (throughId) => engine.announce(throughId),
        state: () => ({
          ...engine.state(),
          hung: this.#hung,
          completed: this.#completed,
          watched: this.#watched,
          faults: faults.saved,
          faultList: faults.kept,
        }),
      },
      clock,
      // A command that reads once prints what it finds. Its findings are no change of health, so they are not logged.
      announced: (event) => isLasting && log(logger, event),
      ...(file === undefined ? {} : { file: { write: async (state) => this.#write(file, state, lease) } }),
      written: (error) =>
        changes.update(
          'state',
          error === undefined
            ? []
            : [
                {
                  key: path,
                  message: 'the health state cannot be saved; it would be lost at a restart',
                  ended: 'the health state could not be saved; it is saved again',
                  fields: { path },
                  detail: error,
                },
              ],
        ),
    });
  }

  /** Reads the state that an earlier run of this boot saved. `isLasting` is false for a single reading, which uses no state file. */
  static async open(
    settings: AgentSettings,
    logger: Logger,
    clock: Clock,
    isLasting: boolean,
    lease = new StateLease(),
  ): Promise<HealthService> {
    const policy = policyOf(settings, logger);
    const path = isLasting ? settings.state.file : '';
    // The state is valid for one boot, because a reboot is the remedy of many latched conditions.
    const file = path === '' ? undefined : createStateFile({ path, bootId: bootIdOf(settings.roots.procfs) });
    const { state: remembered, unreturned, faultList } = await rememberedState(file, path, logger);
    const faults = new FaultLedger(settings.incidents.keep, remembered?.faults, remembered?.faultList ?? faultList);
    const engine = createHealthEngine({ policy, ...(remembered && { state: remembered }), ...(unreturned && { unreturned }) });
    return new HealthService({ policy, engine, faults, file, path, remembered, clock, logger, isLasting, lease });
  }

  get policy(): HealthPolicy {
    return this.#policy;
  }

  /** Judges by these settings from the next snapshot on. */
  configure(settings: AgentSettings): void {
    this.#policy = policyOf(settings, this.#logger);
    this.engine.setPolicy(this.#policy);
    this.faults.configure(settings.incidents.keep);
  }

  /** Devices that an earlier run knew, limited to the families that this run reads. */
  known(): readonly RestoredDevice[] {
    return this.engine.knownDevices().filter(({ device }) => this.#policy.specs.has(device.family));
  }

  /** When the agent judged devices, in this run and before. */
  get watched(): ObservedSpans {
    return this.#watched;
  }

  /** Steps of a family that hung at the end of the earlier run. */
  hung(family: string): readonly HungStep[] {
    return this.#hung[family] ?? [];
  }

  /** Saves the steps that hang now, so that a later run of the agent tries them last. */
  hangs(hung: Readonly<Record<string, readonly HungStep[]>>): void {
    const isSame = JSON.stringify(hung) === JSON.stringify(this.#hung);
    this.#hung = hung;
    if (!isSame) this.#written = this.#journal.save();
  }

  /** Whether an earlier run of the agent read all of a family since the machine booted. */
  wasReadCompletely(family: string): boolean {
    return this.#completed.includes(family);
  }

  /** Saves the families that were read completely, so that a restart of the agent is no reason to doubt them. */
  completed(families: readonly string[]): void {
    const all = [...new Set([...this.#completed, ...families])].sort();
    if (all.length === this.#completed.length) return;
    this.#completed = all;
    this.#written = this.#journal.save();
  }

  /** Registers the callback for the moment when a verdict can change by time alone. */
  onDue(callback: () => void): void {
    this.#onDue = callback;
  }

  /** Registers the callback for the events of each judgement, before they are saved and announced. */
  onEvents(callback: (events: readonly HealthEvent[]) => void): void {
    this.#onEvents = callback;
  }

  /**
   * Registers what must be on disk before the state that contains the latest events. After a kill in between, the events come again. The
   * promise must not reject.
   */
  beforeSave(callback: () => Promise<void>): void {
    this.#beforeSave = callback;
  }

  readonly judge: Judge = (devices, { nowMs, monotonicMs }, faults) => {
    const judged = this.engine.judge({ devices, monotonicMs, faults }, nowMs);
    const judgement = this.faults.takeNews() ? { ...judged, isOtherSet: true } : judged;
    const keys = devices.map(({ key }) => key);
    this.#watched = observedAfter(this.#watched, { keys, nowMs, pauseMs: this.#policy.staleAfterMs, isFirst: this.#isFirst });
    this.#isFirst = false;
    this.#onEvents(judgement.events);
    this.#written = this.#journal.record(judgement, nowMs);
    this.#cancelCheck();
    if (judgement.nextCheckMs !== undefined && !this.#isClosed) {
      this.#cancelCheck = this.#clock.after(judgement.nextCheckMs - nowMs, () => this.#onDue());
    }
    return judgement.verdicts;
  };

  /** Resolves when all verdicts are on disk, or when the write has failed. */
  written(): Promise<void> {
    return this.#written;
  }

  /** Writes the state now. Resolves when it is on disk, or when the write has failed. */
  save(): Promise<void> {
    this.#written = this.#journal.save();
    return this.#written;
  }

  async #write(file: StateFile, state: HealthMemory, lease: StateLease): Promise<string | undefined> {
    await this.#beforeSave();
    return lease.isHeld ? await file.write(state) : undefined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelCheck();
    await this.#journal.close();
  }
}

interface HealthDependencies {
  readonly policy: HealthPolicy;
  readonly engine: HealthEngine;
  readonly faults: FaultLedger;
  /** Undefined when nothing is saved. */
  readonly file: StateFile | undefined;
  /** Path of the state file; empty when nothing is saved. */
  readonly path: string;
  /** State that an earlier run saved; undefined without one. */
  readonly remembered: HealthMemory | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** False for a single reading. */
  readonly isLasting: boolean;
  readonly lease: StateLease;
}

function policyOf(settings: AgentSettings, logger: Logger): HealthPolicy {
  const { policy, problems } = healthPolicy(settings);
  for (const problem of problems) logger.warn('the health configuration has a problem', { problem });
  return policy;
}

async function rememberedState(file: StateFile | undefined, path: string, logger: Logger): Promise<Partial<StateRead>> {
  const read = await file?.read();
  if (read?.ignored !== undefined && read.ignored !== 'absent') {
    const { ignored: reason, message: detail, kept } = read;
    logger.warn('the saved health state is not used', defined({ path, reason, detail, kept }));
  }
  return read ?? {};
}

function log(logger: Logger, event: HealthEvent): void {
  // The log line already has a field `message`.
  const { transition, device, severity, ignored, message: detail, timeMs: _, ...fields } = event;
  const isGood = transition === 'cleared' || event.to === 'healthy';
  const line = isGood || severity === 'info' || ignored === true ? logger.info : logger.warn;
  line(LINES[transition] ?? `a condition was ${transition}`, { device, ...fields, detail });
}

const LINES: Readonly<Partial<Record<Transition, string>>> = {
  state: 'health of a device changed',
  renamed: 'a device has another name',
  replaced: 'a device was replaced',
  fault: 'a device reported a fault',
};

/** Builds the health policy from the configuration. `problems` lists the parts of the configuration that have no effect. */
export function healthPolicy(settings: AgentSettings): ReturnType<typeof createPolicy> {
  return createPolicy({
    specs: Object.fromEntries(settings.families.map(({ family }) => [family.name, family.conditions])),
    config: settings.health,
    staleAfterMs: settings.refresh['stale-after'],
    missingRetentionMs: settings.device['missing-retention'],
    readEveryMs: settings.refresh.interval,
    use: settings.usage,
  });
}

/** Ends conditions that no reading can confirm, and judges again at once. */
export function acceptCondition(
  { device: wanted, condition, why }: AcceptRequest,
  snapshot: Snapshot | undefined,
  health: HealthService,
  assemble: () => void,
): AcceptAnswer {
  const found = (snapshot?.devices ?? []).filter(({ device }) => isCalled(device, wanted));
  const [state, other] = found;
  if (state === undefined) return acceptAbsence(wanted, why, health, assemble);
  if (other !== undefined) return { refused: `several devices are called ${wanted}: ${found.map(({ key }) => key).join(', ')}` };
  const accepted = health.engine.accept(state.key, condition, why);
  if (accepted.length === 0)
    return {
      refused: `${state.key} has no unverified condition${condition === undefined ? '' : ` ${condition}`}; a condition that is read ends with its cause`,
    };
  assemble();
  return { device: state.key, accepted };
}

/** Accepts that a device which was out of service does not return: it was removed, for example. */
function acceptAbsence(wanted: string, why: string, health: HealthService, assemble: () => void): AcceptAnswer {
  const found = health.engine.unreturned().find((device) => isCalled(device, wanted));
  if (found === undefined) return { refused: `there is no device ${wanted}` };
  const accepted = health.engine.accept(deviceKey(found), undefined, why);
  assemble();
  return { device: deviceKey(found), accepted };
}
