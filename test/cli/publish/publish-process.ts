import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { PROGRAM } from '../../support/program.ts';

/** The built publisher in a process of its own. */
export class PublishProcess {
  readonly child: ChildProcess;
  #log = '';

  /** `through`: a command line that runs the one after it, such as one that enters a namespace. */
  constructor(flags: readonly string[], environment: Readonly<Record<string, string>>, through: readonly string[] = []) {
    const [program = '', ...words] = [...through, process.execPath, PROGRAM, 'publish', ...flags, '--log.format=json'];
    this.child = spawn(program, words, {
      env: { PATH: process.env.PATH, ...environment },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#log += text;
    });
  }

  log(): string {
    return this.#log;
  }

  /** How often it logged a message. */
  told(message: string): number {
    return this.#log.split(`"message":"${message}`).length - 1;
  }

  /** Sends a signal and gives the exit status. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return this.child.exitCode;
    const exited = once(this.child, 'exit');
    this.child.kill(signal);
    const [status] = (await exited) as [number | null];
    return status;
  }
}
