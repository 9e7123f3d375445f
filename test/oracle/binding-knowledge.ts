import { minutes, seconds } from '../../src/model/duration.ts';
import { Held, type Sure, type Told } from './held.ts';
import { INTERVAL_MS, SLACK_MS, STALE_MS } from './node.ts';

/** Who has a function now. `handed`: a driver that hands it to a virtual machine, or an administrator chose one. */
export type Binding = 'own' | 'none' | 'handed';

/** What the whole machine shows at one collection. */
export interface BusFacts {
  readonly nowMs: number;
  readonly binding: Binding;
  /** The driver has another function of the model. */
  readonly hasSibling: boolean;
  /** The module of the driver is loaded, or nobody can tell whether it is. */
  readonly isLoaded: boolean;
  readonly log: 'whole' | 'without its begin' | 'closed';
  readonly hasNode: boolean;
}

/** How a family differs from the others. */
export interface FamilyWords {
  /** A machine has such hardware only to use it. */
  readonly isWanted: boolean;
  /** A machine may have such functions that nobody wants, so that those that never had a driver need not be listed. */
  readonly isListedByUse: boolean;
}

/** The nodes of a device are facts that a family may read once a minute. */
const FACTS_MS = seconds(60) + INTERVAL_MS;
/** A killed agent may not have written what is no event. */
const WRITTEN_MS = seconds(45);

/**
 * What an agent must say of one PCI function, by docs/health.md and docs/declare-a-family.md. It remembers whether somebody used the
 * function, and what counts. This model does not depend on the implementation of the agent.
 */
export class BindingKnowledge {
  readonly #words: FamilyWords;
  readonly #unbound = new Held(minutes(1));
  readonly #notStarted = new Held(minutes(2));
  readonly #nodeMissing = new Held(minutes(2));
  /** A driver served it, or it was handed over. */
  #used: Sure = 'no';
  #usedSinceMs = Number.NEGATIVE_INFINITY;
  /** The log has a failed start, and the function had a driver at two collections since. */
  #hasFailedLine = false;
  #isFailureOver = false;
  /** The agent read the line, and did not see the end. */
  #isFailureKnown: Sure = 'no';
  /** Collections since the function has a driver, and since the agent reads the log. */
  #boundLooks = 0;
  #openLooks = 0;
  /** The state of the function was read, at this time. */
  #readMs: number | undefined;
  #startedMs = 0;
  /** The node appeared, disappeared, or is to be made by a driver that came; none of that before it was missing once. */
  #nodeChangedMs = Number.NEGATIVE_INFINITY;
  #node = { binding: 'own' as Binding, hasNode: true };
  #wasRead: Sure = 'no';

  constructor(words: FamilyWords) {
    this.#words = words;
  }

  startFailed(): void {
    this.#hasFailedLine = true;
    this.#isFailureOver = false;
  }

  killed(nowMs: number): void {
    if (this.#used === 'yes' && nowMs - this.#usedSinceMs < WRITTEN_MS && !this.#unbound.isRaised) this.#used = 'maybe';
    if (this.#wasRead === 'yes') this.#wasRead = 'maybe';
    this.#restarted(false);
  }

  forgotten(): void {
    this.#used = 'no';
    this.#wasRead = 'no';
    this.#isFailureKnown = 'no';
    this.#readMs = undefined;
    this.#restarted(true);
  }

  started(nowMs: number): void {
    this.#startedMs = nowMs;
  }

  #restarted(isForgetful: boolean): void {
    this.#openLooks = this.#boundLooks = 0;
    for (const held of [this.#unbound, this.#notStarted, this.#nodeMissing]) held.restarted(isForgetful);
  }

  /** Whether the agent may leave the function out of its list. */
  mayBeUnlisted({ binding }: BusFacts): boolean {
    return this.#words.isListedByUse && binding === 'none' && this.#used !== 'yes';
  }

  /** One collection. What the agent must say, by condition. */
  look({ nowMs, binding, hasSibling, isLoaded, log, hasNode }: BusFacts): ReadonlyMap<string, Told> {
    const told = new Map<string, Told | undefined>();
    const { isWanted } = this.#words;
    if (binding !== 'none' && this.#used !== 'yes') {
      this.#used = 'yes';
      this.#usedSinceMs = nowMs;
    }
    const failed = this.#failure(binding, log);
    const used = this.#used;
    const isAlone = binding === 'none' && !hasSibling && !isWanted;
    const isDoubtful = isAlone && used !== 'yes' && failed === 'no' && isLoaded && log !== 'whole';
    if (isDoubtful && used === 'no') return this.#unread(nowMs);
    // A reader of this run that never saw the line cannot say more than that it is remembered.
    const isRemembered = isAlone && used !== 'yes' && failed !== 'no' && log === 'closed';
    const sure = (holds: boolean): Sure => (holds ? 'yes' : 'no');
    const ifUsed = (holds: boolean): Sure => (holds ? used : 'no');
    const ifUnused = (holds: boolean): Sure => (holds ? (used === 'yes' ? 'no' : used === 'no' ? 'yes' : 'maybe') : 'no');
    const isNone = binding === 'none';
    told.set('DriverUnbound', this.#unbound.look(ifUsed(isNone), nowMs));
    told.set('NotStarted', this.#notStarted.look(isRemembered ? 'maybe' : ifUnused(isNone && hasSibling), nowMs));
    told.set('NodeMissing', this.#nodeMissing.look(this.#lacksNode(binding, hasNode, nowMs), nowMs));
    const now = (holds: Sure): Told | undefined => (holds === 'yes' ? 'counts' : holds === 'maybe' ? 'may' : undefined);
    told.set('DriverMissing', now(ifUnused(isNone && !hasSibling && isWanted)));
    told.set('StartFailed', now(failed));
    told.set('HandedOver', now(sure(binding === 'handed')));
    told.set('NotInUse', isDoubtful ? 'may' : now(failed === 'maybe' ? 'maybe' : failed === 'yes' ? 'no' : ifUnused(isAlone)));
    if (isRemembered) for (const type of KEPT) if (type !== 'StartFailed') told.set(type, 'may');
    if (isDoubtful || isRemembered) told.set('DeviceNotRead', 'may');
    this.#readMs = nowMs;
    this.#wasRead = 'yes';
    return new Map([...told].flatMap(([type, how]) => (how === undefined ? [] : [[type, how] as const])));
  }

  /** Nobody can say whether its start failed: it is listed, and unknown. What was read before counts until it is stale. */
  #unread(nowMs: number): ReadonlyMap<string, Told> {
    for (const held of [this.#unbound, this.#notStarted]) held.look('maybe', nowMs);
    if (this.#wasRead === 'no') return new Map([['DeviceNotRead', 'counts']]);
    const fromMs = Math.max(this.#readMs ?? 0, this.#startedMs);
    const isStale = this.#wasRead === 'yes' && nowMs - fromMs >= STALE_MS + INTERVAL_MS + SLACK_MS;
    return new Map<string, Told>([...KEPT.map((type) => [type, 'may'] as const), ['DeviceNotRead', isStale ? 'counts' : 'may']]);
  }

  #lacksNode(binding: Binding, hasNode: boolean, nowMs: number): Sure {
    const before = this.#node;
    const wasMissing = !hasNode || this.#nodeChangedMs > Number.NEGATIVE_INFINITY;
    if (wasMissing && (before.binding !== binding || before.hasNode !== hasNode)) this.#nodeChangedMs = nowMs;
    this.#node = { binding, hasNode };
    if (binding !== 'own') return 'no';
    return nowMs - this.#nodeChangedMs < FACTS_MS ? 'maybe' : hasNode ? 'no' : 'yes';
  }

  /** A line counts when it is read. The failure is over when the function has a driver at two collections. */
  #failure(binding: Binding, log: BusFacts['log']): Sure {
    this.#openLooks = log === 'closed' ? 0 : this.#openLooks + 1;
    this.#boundLooks = binding === 'none' ? 0 : this.#boundLooks + 1;
    if (!this.#hasFailedLine) return 'no';
    if (binding === 'none') {
      if (this.#openLooks > 0 && !this.#isFailureOver) this.#isFailureKnown = 'yes';
      // The line does not tell that a start succeeded since.
      else if (this.#openLooks === 1 && this.#isFailureKnown === 'no') this.#isFailureKnown = 'maybe';
      return this.#isFailureKnown;
    }
    // An agent that reads the log for the first time finds a device that has its driver.
    const isSurelyOver = this.#openLooks === 1 || (this.#openLooks > 1 && this.#boundLooks > 1);
    if (!isSurelyOver) return this.#isFailureKnown === 'no' && (this.#openLooks === 0 || this.#isFailureOver) ? 'no' : 'maybe';
    this.#isFailureOver = true;
    this.#isFailureKnown = 'no';
    return 'no';
  }
}

const KEPT = ['DriverUnbound', 'NotStarted', 'DriverMissing', 'StartFailed', 'HandedOver', 'NotInUse'];
