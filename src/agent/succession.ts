import type { Clock } from '../host/clock.ts';
import type { Logger } from '../log/logger.ts';
import { controlSocket, type TakeOverAnswer } from '../server/control/control-socket.ts';
import { type TakenOver, takeOver } from '../server/control/take-over.ts';
import { AgentSockets } from '../server/sockets.ts';
import { StateLease } from './state-lease.ts';

/** How often a start asks again while an agent is being replaced by another one. */
const TRIES = 10;
const RETRY_MS = 1_000;

/** What an older agent saves before it leaves the disk to a newer one, and does when it has the disk again. */
export interface Succeeded {
  /** Resolves when all that is known is on disk. */
  save(): Promise<void>;
  /** Resolves when the writes that had begun have ended. */
  settled(): Promise<void>;
  /** Writes what stayed in memory. */
  resumed(): void;
}

/**
 * One node, one state on the disk: of two agents, as in an update, the older one writes its state a last time and leaves the disk and then the
 * sockets to the newer one. When the newer one ends first, the older one has both again.
 */
export class Succession {
  readonly lease = new StateLease();
  readonly sockets: AgentSockets;
  readonly #logger: Logger;
  #taken: TakenOver | undefined;
  #isEnding = false;

  private constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.sockets = new AgentSockets(logger, clock);
  }

  /** Asks the agent that uses the same state file; empty: there is none. Resolves when the state on the disk can be read. */
  static async begin(stateFile: string, logger: Logger, clock: Clock): Promise<Succession> {
    const succession = new Succession(logger, clock);
    if (stateFile !== '') await succession.#takeOver(controlSocket(stateFile), clock);
    return succession;
  }

  async #takeOver(path: string, clock: Clock): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const answer = await takeOver(path);
      if (answer === undefined) return;
      if ('sockets' in answer) {
        this.#taken = answer;
        return this.#logger.info('an older agent runs with the same state file; this agent takes over', { path });
      }
      if (tries < TRIES) {
        await new Promise<void>((resolve) => void clock.after(RETRY_MS, resolve));
        continue;
      }
      const remedy = 'End one of the two agents. Until then both write the state.';
      return this.#logger.warn('another agent has the control socket and does not give it up', { path, detail: answer.problem, remedy });
    }
  }

  /** The first snapshot is there: clients are answered here from now on. */
  serving(): void {
    this.sockets.serving(this.#taken?.sockets ?? []);
  }

  /** Leaves everything to a newer agent, until that ends. */
  async give({ save, settled, resumed }: Succeeded, ended: Promise<void>): Promise<TakeOverAnswer> {
    if (!this.lease.isHeld) return { refused: 'another agent takes over already' };
    await save();
    this.lease.give();
    await settled();
    this.#logger.info('a newer agent takes over; the state of this one stays in memory');
    void ended.then(() => {
      if (this.#isEnding) return;
      this.lease.take();
      this.sockets.resume();
      resumed();
      this.#logger.info('the newer agent has ended; this agent goes on');
    });
    return { sockets: this.sockets.yield() };
  }

  /** This agent ends: it closes its sockets, and takes nothing back. */
  async close(): Promise<void> {
    this.#isEnding = true;
    await this.sockets.close();
  }

  /** Gives back what was taken, if the older agent still runs. Must be called after the last write. */
  end(): void {
    this.#taken?.end();
  }
}
