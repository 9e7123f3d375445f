import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

interface Message {
  readonly return?: unknown;
  readonly error?: { readonly desc: string };
  readonly event?: string;
}

/** The emulator's monitor, by which hardware is handled: one line of JSON each way, events apart. */
export class Monitor {
  readonly #socket: Socket;
  readonly #messages: AsyncIterator<string>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.#messages = createInterface({ input: socket })[Symbol.asyncIterator]();
  }

  static async connect(path: string): Promise<Monitor> {
    const socket = createConnection(path);
    await once(socket, 'connect');
    const monitor = new Monitor(socket);
    await monitor.#messages.next();
    await monitor.#ask({ execute: 'qmp_capabilities' });
    return monitor;
  }

  /** A line as people type it: what was printed. */
  async say(line: string): Promise<string> {
    return String(await this.#ask({ execute: 'human-monitor-command', arguments: { 'command-line': line } }));
  }

  close(): void {
    this.#socket.destroy();
  }

  async #ask(question: object): Promise<unknown> {
    this.#socket.write(`${JSON.stringify(question)}\n`);
    for (;;) {
      const { value, done } = await this.#messages.next();
      if (done) throw new Error('the emulator hung up');
      const message = JSON.parse(value as string) as Message;
      if (message.event !== undefined) continue;
      if (message.error !== undefined) throw new Error(message.error.desc);
      return message.return;
    }
  }
}
