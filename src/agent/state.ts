import { dirname, resolve } from 'node:path';
import { type Clock, pause } from '../host/clock.ts';
import { whyUntrusted } from '../host/fs/open-path.ts';
import { Tree } from '../host/fs/tree.ts';
import type { Logger } from '../log/logger.ts';
import { controlSocket, type TakeOverAnswer } from '../server/control/control-socket.ts';
import { type TakenOver, takeOver } from '../server/control/take-over.ts';
import { AgentSockets } from '../server/sockets.ts';
import type { AgentSettings } from './settings.ts';

/** How long a start asks an agent that is being replaced by another one, or that hangs. */
const PATIENCE_MS = 25_000;
const RETRY_MS = 1_000;

/** Identity of the present boot of the machine. Empty when it cannot be read: what was saved may then be of another boot. */
export function bootIdOf(procfs: string): string {
  return new Tree(procfs).text('sys/kernel/random/boot_id') ?? '';
}

/** Settings without a state file, and the reason, when others than root and the user of this process can change the directory of the file. */
export async function withTrustedState(settings: AgentSettings): Promise<{ readonly settings: AgentSettings; readonly problem?: string }> {
  const { file } = settings.state;
  const problem = file === '' ? undefined : await whyUntrusted(dirname(resolve(file)));
  if (problem === undefined) return { settings };
  return { settings: { ...settings, state: { ...settings.state, file: '' } }, problem };
}

/** Whether this agent may write the state on the disk. Of two agents on a node, as in an update, only the newer one may. */
export class StateLease {
  #isHeld = true;

  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** A newer agent reads the state now. What this agent learns from now on stays in memory. */
  give(): void {
    this.#isHeld = false;
  }

  /** The newer agent has ended. This one still has all in memory, and writes it again. */
  take(): void {
    this.#isHeld = true;
  }
}

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
  readonly #clock: Clock;
  /** Empty: there is no state on the disk. */
  readonly #path: string;
  readonly #taken: TakenOver[] = [];
  #isAsking = false;
  #isEnding = false;

  private constructor(stateFile: string, logger: Logger, clock: Clock) {
    this.#path = stateFile === '' ? '' : controlSocket(stateFile);
    this.#logger = logger;
    this.#clock = clock;
    this.sockets = new AgentSockets(logger, clock);
  }

  /** Asks the agent that uses the same state file; empty: there is none. Resolves when the state on the disk can be read. */
  static async begin(stateFile: string, logger: Logger, clock: Clock): Promise<Succession> {
    const succession = new Succession(stateFile, logger, clock);
    if (stateFile !== '') await succession.#takeOver();
    return succession;
  }

  async #takeOver(): Promise<void> {
    const untilMs = this.#clock.monotonic() + PATIENCE_MS;
    for (let detail = await this.#ask(); detail !== undefined; detail = await this.#ask()) {
      if (this.#clock.monotonic() >= untilMs) {
        const remedy = 'End the other agent. Until it ends or answers, both write the state.';
        return this.#logger.warn('another agent has the control socket and does not give it up', { path: this.#path, detail, remedy });
      }
      await pause(this.#clock, RETRY_MS);
    }
  }

  /** Resolves to why the other agent does not give up the state; undefined when it did or when there is none. */
  async #ask(): Promise<string | undefined> {
    this.#isAsking = true;
    const answer = await takeOver(this.#path);
    this.#isAsking = false;
    if (answer === undefined) return undefined;
    if ('problem' in answer) return answer.problem;
    this.#taken.push(answer);
    this.#logger.info('an older agent runs with the same state file; this agent takes over', { path: this.#path });
    return undefined;
  }

  /**
   * The first snapshot is there: clients are answered here from now on. An agent that started at the same time, or one that was stopped and goes
   * on, can have the control socket: it is asked until it gives up. `rewrite` then writes all that is known, as the other one has just done.
   */
  async serving(rewrite: () => void): Promise<void> {
    const serve = (): void => this.sockets.serving(this.#taken.flatMap(({ sockets }) => sockets));
    serve();
    if (this.#path === '') return;
    for (;;) {
      await pause(this.#clock, RETRY_MS);
      if (this.#isEnding || !this.lease.isHeld || this.sockets.isOwn(this.#path)) return;
      const { length } = this.#taken;
      await this.#ask();
      if (this.#taken.length === length) continue;
      serve();
      rewrite();
    }
  }

  /** Leaves everything to a newer agent, until that ends. */
  async give({ save, settled, resumed }: Succeeded, ended: Promise<void>): Promise<TakeOverAnswer> {
    if (!this.lease.isHeld) return { refused: 'another agent takes over already' };
    // The socket can become its own between the check and the question.
    if (this.#isAsking) return { refused: 'this agent is about to take over itself' };
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
    for (const one of this.#taken) one.end();
  }
}
