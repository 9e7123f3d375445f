import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CapturedCommand } from '../../capture/format.ts';

/** Small programs in the place of the captured ones. They print what those printed and end as they ended. */
export class ReplayedPrograms {
  readonly #directory: string;
  readonly #numbers = new Map<string, number>();

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true });
  }

  /** Path of the program in the place of a captured one. It has a number, because the captured name could be that of another file. */
  pathOf(program: string): string {
    const number = this.#numbers.get(program) ?? this.#numbers.size;
    this.#numbers.set(program, number);
    return join(this.#directory, `program-${number}`);
  }

  write(commands: readonly CapturedCommand[]): void {
    for (const program of new Set(commands.map((command) => command.program)))
      this.#program(
        this.pathOf(program),
        commands.filter((command) => command.program === program),
      );
  }

  #program(path: string, commands: readonly CapturedCommand[]): void {
    // A program that was not found, or that the agent may not execute, fails before it sees its arguments.
    if (commands.some(({ failure }) => failure === 'not-found')) return;
    const mode = commands.some(({ failure }) => failure === 'permission') ? 0o644 : 0o755;
    const cases = commands.map((command, index) => {
      for (const name of ['stdout', 'stderr'] as const) replace(`${path}.${index}.${name}`, command[name], 0o644);
      return `  ${quoted(command.args.join(' '))}) ${ending(command, `${path}.${index}`)} ;;`;
    });
    replace(path, `#!/bin/sh\ncase "$*" in\n${cases.join('\n')}\n  *) exit 127 ;;\nesac\n`, mode);
  }
}

function ending({ exitCode, signal, failure }: CapturedCommand, files: string): string {
  if (failure === 'timeout') return 'exec sleep 3600';
  if (failure === 'too-large') return 'exec cat /dev/zero';
  const print = `cat ${quoted(`${files}.stdout`)}; cat ${quoted(`${files}.stderr`)} >&2; `;
  return signal === undefined ? `${print}exit ${exitCode ?? 1}` : `${print}kill -${signal.slice('SIG'.length)} $$`;
}

/** Replaces a file at once: a probe may read it now. */
export function replace(path: string, text: string, mode = 0o600): void {
  writeFileSync(`${path}.new`, text, { mode });
  renameSync(`${path}.new`, path);
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
