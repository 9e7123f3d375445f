import type { Server } from 'node:net';
import type { Clock } from '../host/clock.ts';
import { ReplacedSocket } from '../host/fs/replaced-socket.ts';
import { type ChangeLog, createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import type { SocketName, SocketStats } from '../model/agent-stats.ts';
import { defined } from '../model/defined.ts';

/** What answers on one of the sockets. */
export interface SocketServer {
  readonly name: SocketName;
  readonly path: string;
  /** Mode of the file: who may connect. */
  readonly mode: number;
  /** The directory is the agent's own, and is made when it is absent. */
  readonly isOwnDirectory?: boolean;
  listener(): Server;
  /** Ends all answers. */
  close(): Promise<void>;
}

/**
 * Keeps the sockets of this agent in their places. During an update two agents run: the new one takes the sockets of the old one when it can
 * answer, and the old one has them back when the new one ends early.
 */
export class AgentSockets {
  readonly #clock: Clock;
  readonly #changes: ChangeLog;
  readonly #kept: { readonly server: SocketServer; readonly socket: ReplacedSocket }[] = [];
  readonly #refused: SocketStats[] = [];
  /** Sockets that another agent gave to this one. */
  #given: ReadonlySet<string> = new Set();
  /** `starting`: this agent has nothing to answer yet. `yielded`: a newer agent takes over. */
  #phase: 'starting' | 'serving' | 'yielded' = 'starting';

  constructor(logger: Logger, clock: Clock) {
    this.#clock = clock;
    this.#changes = createChangeLog(logger, () => clock.monotonic());
  }

  /** Serves from now on, also when the socket cannot be made yet. Never rejects. */
  async keep(server: SocketServer): Promise<void> {
    const { name, path, mode, isOwnDirectory = false } = server;
    const socket = await ReplacedSocket.open({
      path,
      mode,
      makesDirectory: isOwnDirectory,
      clock: this.#clock,
      serve: () => server.listener(),
      mayReplace: (identity) => this.#phase === 'serving' && this.#given.has(identity),
      isYielded: () => this.#phase !== 'serving',
      looked: (problem) => this.#changes.update(name, problem === undefined ? [] : [trouble(name, path, problem)]),
    });
    this.#kept.push({ server, socket });
  }

  /** A socket that is not made at all. */
  refuse(name: SocketName, path: string, problem: string): void {
    this.#refused.push({ name, path, problem });
    this.#changes.update(name, [trouble(name, path, problem)]);
  }

  /** This agent can answer. It replaces the sockets of the agent that gave them. */
  serving(given: readonly string[]): void {
    this.#given = new Set(given);
    this.#enter('serving');
  }

  /** Gives the sockets to a newer agent. Returns their identities. */
  yield(): readonly string[] {
    this.#enter('yielded');
    return this.#kept.flatMap(({ socket: { identity } }) => (identity === undefined ? [] : [identity]));
  }

  /** The newer agent has ended: its sockets are replaced as soon as nobody answers there. */
  resume(): void {
    this.#given = new Set();
    this.#enter('serving');
  }

  /** Whether this agent made the socket at a path. */
  isOwn(path: string): boolean {
    return this.#kept.some(({ socket }) => socket.path === path && socket.isInPlace);
  }

  stats(): readonly SocketStats[] {
    const kept = this.#kept.map(({ server: { name, path }, socket: { problem } }) => defined({ name, path, problem }));
    return [...this.#refused, ...kept];
  }

  async close(): Promise<void> {
    await Promise.all(
      this.#kept.map(async ({ server, socket }) => {
        await socket.close();
        await server.close();
      }),
    );
  }

  #enter(phase: 'starting' | 'serving' | 'yielded'): void {
    this.#phase = phase;
    for (const { socket } of this.#kept) void socket.look();
  }
}

const trouble = (name: SocketName, path: string, detail: string) => ({
  key: path,
  message: 'a socket of the agent is not in its place; its clients cannot ask',
  ended: 'a socket of the agent was not in its place; it is there again',
  fields: { socket: name, path },
  detail,
  remedy: 'The agent makes it again within two seconds when the cause is gone; docs/runbooks/agents.md#deviceagentsocketaway.',
});
