import { UserError } from '../../errors.ts';
import type { Clock } from '../../host/clock.ts';
import { SingleFlight } from '../../host/single-flight.ts';
import type { ChangeLog } from '../../log/changes.ts';
import type { Logger } from '../../log/logger.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import type { Ask } from '../agent-api.ts';
import { whyNot } from './agent-feed.ts';
import { agentAway, type ConditionContent, conditionsOf, stopped } from './conditions.ts';
import { DeviceRules } from './device-rules.ts';
import { IncidentEvents } from './incident-events.ts';
import type { Kubernetes } from './kubernetes.ts';
import { NodeConditions } from './node-conditions.ts';
import { NodeTaint } from './node-taint.ts';
import type { PublishOptions } from './options.ts';
import { FAILURE_REMEDIES, failureKind, Pace } from './pace.ts';
import type { AgentView } from './view.ts';

export interface PublisherParts {
  readonly kubernetes: Kubernetes;
  readonly ask: Ask;
  /** Returns the present state of the agent; `away` when the agent sends nothing; undefined when it is not known yet. */
  readonly view: () => AgentView | 'away' | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly changes: ChangeLog;
  /** Returns a number from 0 up to 1. */
  readonly random: () => number;
}

export interface PublisherSettings extends Pick<PublishOptions, 'events' | 'device-taint-rules' | 'node-taint'> {
  readonly node: string;
  readonly families: readonly DeviceFamily[];
  readonly resyncMs: number;
}

/** One kind of objects that is kept up to date. A failure of one does not stop the others. */
interface Work {
  readonly what: string;
  readonly pace: Pace;
  /** Returns after how many milliseconds to run again, even without news. */
  run(): Promise<number>;
}

/**
 * Keeps what the cluster has equal to what the agent says. Each run compares both anew, and nothing waits in a queue: after any outage the
 * newest state is written, and nothing else.
 */
export class Publisher {
  readonly #parts: PublisherParts;
  readonly #conditions: NodeConditions;
  readonly #works: readonly Work[];
  readonly #runs = new SingleFlight(() => this.#run());
  #isOver = false;
  #cancel: (() => void) | undefined;

  constructor(parts: PublisherParts, settings: PublisherSettings) {
    this.#parts = parts;
    const { node, resyncMs } = settings;
    const conditions = new NodeConditions({ ...parts, node, resyncMs });
    const isWorkedOn = (): boolean => conditions.isWorkedOn;
    const events = new IncidentEvents(parts);
    const rules = new DeviceRules(parts.kubernetes, parts.clock, { ...settings, effect: settings['device-taint-rules'], isWorkedOn });
    const taint = new NodeTaint({ ...parts, node, resyncMs, effect: settings['node-taint'], isWorkedOn });
    const known = (): AgentView | undefined => {
      const view = this.#view();
      return view === 'away' ? undefined : view;
    };
    const work = (what: string, run: Work['run']): Work => ({ what, pace: new Pace(parts.random), run });
    this.#conditions = conditions;
    this.#works = [
      work('conditions of the node', () => conditions.keep(() => this.#wanted())),
      ...(settings['device-taint-rules'] === 'off' ? [] : [work('taint rules of devices', () => rules.keep(known))]),
      ...(settings['node-taint'] === 'off' ? [] : [work('taint of the node', () => taint.keep(known))]),
      ...(settings.events
        ? [work('events', () => events.write({ name: node, uid: conditions.uid, isWorkedOn: conditions.isWorkedOn }))]
        : []),
    ];
  }

  /** Must be called when the agent sent a message, and when it sent none for too long. */
  wake(): void {
    if (!this.#isOver) void this.#runs.again();
  }

  /** Ends the work, and sets the conditions to unknown, because no program maintains them afterwards. */
  async stop(): Promise<void> {
    this.#isOver = true;
    this.#cancel?.();
    await this.#runs.running;
    try {
      await this.#conditions.end(stopped);
    } catch (error) {
      this.#parts.logger.warn('the conditions of the node keep their last state', { detail: (error as Error).message });
    }
  }

  /** An answer can arrive after the stop began. Nothing may be written because of it: somebody may have removed the objects meanwhile. */
  #view(): AgentView | 'away' | undefined {
    return this.#isOver ? undefined : this.#parts.view();
  }

  #wanted(): readonly ConditionContent[] | undefined {
    const view = this.#view();
    return view === 'away' ? agentAway() : view && conditionsOf(view);
  }

  async #run(): Promise<void> {
    const delayMs = await this.#runAll();
    this.#cancel?.();
    if (!this.#isOver && Number.isFinite(delayMs)) this.#cancel = this.#parts.clock.after(delayMs, () => this.wake());
  }

  /** Returns after how many milliseconds one of them wants to run again. */
  async #runAll(): Promise<number> {
    const { clock } = this.#parts;
    let delayMs = Number.POSITIVE_INFINITY;
    for (const work of this.#works) {
      const waitMs = work.pace.waitMs(clock.monotonic());
      if (this.#isOver) return delayMs;
      delayMs = Math.min(delayMs, waitMs > 0 ? waitMs : await this.#runOne(work));
    }
    return delayMs;
  }

  async #runOne({ what, pace, run }: Work): Promise<number> {
    const { clock, changes } = this.#parts;
    try {
      const delayMs = await run();
      pace.succeeded();
      changes.update(what, []);
      return delayMs;
    } catch (error) {
      pace.failed(error, clock.monotonic());
      changes.update(what, [{ fields: { what }, ...troubleOf(error) }]);
      return pace.waitMs(clock.monotonic());
    }
  }
}

function troubleOf(error: unknown) {
  if (error instanceof UserError) {
    return { key: 'agent', message: 'the agent cannot be asked what is to be written', ended: 'the agent was asked', ...whyNot(error) };
  }
  const key = failureKind(error);
  const [message, ended] = ['the API server does not take what is to be written', 'the API server took it, or refused it otherwise'];
  return { key, message, ended, detail: (error as Error).message, remedy: FAILURE_REMEDIES[key] };
}
