import type { ServerResponse } from 'node:http';

/** Commands in the queue. A further one is told so at once, and does not wait. */
const MOST_COMMANDS = 16;

/**
 * Commands that read the devices themselves, one after the other: in a container they share the memory limit of the agent, which has room for
 * one of them. Each gets the head of its answer at once and a line when it is its turn, which lasts until it closes the connection.
 */
export class Turns {
  readonly #queue: ServerResponse[] = [];

  add(response: ServerResponse): void {
    if (this.#queue.length >= MOST_COMMANDS) return void response.writeHead(503).end();
    response.writeHead(200, { 'Content-Type': 'text/plain' }).flushHeaders();
    response.once('close', () => {
      const at = this.#queue.indexOf(response);
      this.#queue.splice(at, 1);
      if (at === 0) this.#begin();
    });
    this.#queue.push(response);
    if (this.#queue.length === 1) this.#begin();
  }

  #begin(): void {
    this.#queue[0]?.write('your turn\n');
  }
}
