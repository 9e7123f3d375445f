import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import headless, { type Terminal } from '@xterm/headless';
import { compiledProgram } from './compiled-library.ts';
import { DEADLINE_MS } from './until.ts';

export interface TerminalEnd {
  readonly how: 'exit' | 'signal';
  readonly number: number;
  /** The modes of the terminal are those from before the command. */
  readonly areModesRestored: boolean;
}

/** A command on a real pseudo-terminal, with what its user sees: the bytes rendered by xterm.js. */
export class PseudoTerminal {
  readonly ended: Promise<TerminalEnd>;
  /** Everything that the command wrote. */
  bytes = '';
  readonly #child: ChildProcess;
  readonly #terminal: Terminal;
  #look: () => void = () => {};

  constructor(size: { columns: number; rows: number }, command: readonly string[], environment: Readonly<Record<string, string>>) {
    const { columns: cols, rows } = size;
    this.#terminal = new headless.Terminal({ cols, rows, allowProposedApi: true });
    this.#child = spawn(compiledProgram('test/support/pty.c'), [String(cols), String(rows), ...command], {
      env: { PATH: process.env.PATH, ...environment },
      stdio: ['pipe', 'pipe', 'inherit', 'pipe'],
    });
    (this.#child.stdout as Readable).setEncoding('utf8').on('data', (text: string) => {
      this.bytes += text;
      // Within a synchronized update the screen is no frame.
      const isWhole = this.bytes.lastIndexOf('\u001b[?2026h') <= this.bytes.lastIndexOf('\u001b[?2026l');
      this.#terminal.write(text, () => {
        if (isWhole) this.#look();
      });
    });
    let end = '';
    (this.#child.stdio[3] as Readable).setEncoding('utf8').on('data', (text: string) => {
      end += text;
    });
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('close', () => {
        const [, how, number, modes] = /^(exit|signal) (\d+) (same|changed)$/m.exec(end) ?? [];
        if (how === undefined) return reject(new Error(`the terminal ended without a word: ${end}`));
        // An empty write waits for the bytes before it to be rendered.
        this.#terminal.write('', () => {
          this.#look();
          resolve({ how: how as TerminalEnd['how'], number: Number(number), areModesRestored: modes === 'same' });
        });
      });
    });
    // A test that ends by `until` does not wait for the end.
    this.ended.catch(() => {});
  }

  /** Lines of the screen, without blanks at their ends. */
  screen(): string {
    const { active } = this.#terminal.buffer;
    const lines = Array.from({ length: this.#terminal.rows }, (_none, row) => active.getLine(active.baseY + row)?.translateToString(true));
    return `${lines.map((line) => (line ?? '').trimEnd()).join('\n')}\n`;
  }

  /** True while the program has the alternate screen. */
  get isAlternate(): boolean {
    return this.#terminal.buffer.active.type === 'alternate';
  }

  /** Resolves with the screen once it matches. */
  until(pattern: RegExp): Promise<string> {
    return new Promise((resolve, reject) => {
      // Ends a test that would fail anyway, so that it shows the screen.
      const limit = setTimeout(() => reject(new Error(`no ${pattern} in time:\n${this.screen()}`)), DEADLINE_MS);
      this.#look = () => {
        const screen = this.screen();
        if (!pattern.test(screen)) return;
        this.#look = () => {};
        clearTimeout(limit);
        resolve(screen);
      };
      void this.ended.then(
        () => reject(new Error(`ended before ${pattern}:\n${this.screen()}`)),
        (error) => reject(error),
      );
      this.#look();
    });
  }

  type(text: string): void {
    this.#say(`i ${Buffer.from(text).toString('hex')}`);
  }

  resize(columns: number, rows: number): void {
    this.#terminal.resize(columns, rows);
    this.#say(`r ${columns} ${rows}`);
  }

  signal(number: number): void {
    this.#say(`k ${number}`);
  }

  /** Ends the command, however it is. */
  kill(): void {
    this.#child.stdin?.end();
  }

  #say(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }
}
