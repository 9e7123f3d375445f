import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Frame } from '../../capture/frame.ts';

type Command = Frame['commands'][number];

/** Writes the commands of a capture as small programs, which print what the real ones printed and end as they ended. */
export class RecordedCommands {
  readonly #directory: string;
  readonly #commands = new Map<string, Command>();
  readonly #numbers = new Map<string, number>();

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true });
  }

  /** Path of the program that replaces a captured one. It has a number, because the captured name could be that of another file. */
  programFor(program: string): string {
    const number = this.#numbers.get(program) ?? this.#numbers.size;
    this.#numbers.set(program, number);
    return join(this.#directory, `program-${number}`);
  }

  apply({ commands }: Frame): void {
    if (commands.length === 0) return;
    for (const command of commands) this.#commands.set(JSON.stringify([command.program, command.args]), command);
    const programs = new Set([...this.#commands.values()].map(({ program }) => program));
    for (const program of programs) this.#write(program);
  }

  #write(program: string): void {
    const path = this.programFor(program);
    const own = [...this.#commands.values()].filter((command) => command.program === program);
    // A program that was not found, or that the agent may not execute, fails before it sees its arguments.
    if (own.some(({ failure }) => failure === 'not-found')) return;
    const mode = own.some(({ failure }) => failure === 'permission') ? 0o644 : 0o755;
    const cases = own.map((command, index) => {
      for (const name of ['stdout', 'stderr'] as const) this.#replace(`${path}.${index}.${name}`, command[name], 0o644);
      return `  ${quoted(command.args.join(' '))}) ${ending(command, `${path}.${index}`)} ;;`;
    });
    this.#replace(path, `#!/bin/sh\ncase "$*" in\n${cases.join('\n')}\n  *) exit 127 ;;\nesac\n`, mode);
  }

  #replace(path: string, text: string, mode: number): void {
    writeFileSync(`${path}.new`, text, { mode });
    renameSync(`${path}.new`, path);
  }
}

function ending({ exitCode, signal, failure }: Command, files: string): string {
  if (failure === 'timeout') return 'exec sleep 3600';
  if (failure === 'too-large') return 'exec cat /dev/zero';
  const print = `cat ${quoted(`${files}.stdout`)}; cat ${quoted(`${files}.stderr`)} >&2; `;
  return signal === undefined ? `${print}exit ${exitCode ?? 1}` : `${print}kill -${signal.slice('SIG'.length)} $$`;
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
