import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Path of the header among the files of its package. */
export function headerBelow(folder: string): string {
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((path) => path.endsWith('/nvml.h'));
  if (found === undefined) throw new Error(`no nvml.h below ${folder}`);
  return join(folder, found);
}

/** One number of the agent, and how C calls the same. */
export interface Entry {
  /** What the agent means by the number. */
  readonly what: string;
  /** A constant, or `sizeof` or `offsetof`. */
  readonly expression: string;
  readonly ours: number;
}

/** Names that an expression needs: each must be in the header, or the header is older than the name. */
const namesIn = (expression: string): readonly string[] =>
  (expression.match(/[A-Za-z_]\w*/g) ?? []).filter((word) => !['sizeof', 'offsetof', 'int'].includes(word));

export interface Comparison {
  /** Lines that a person can read: what, our number, the number of the header. */
  readonly different: readonly string[];
  /** Expressions that this header does not know. */
  readonly unknown: readonly string[];
  readonly compared: number;
}

/** Compiles a program that prints the numbers of the header, and compares them with those of the agent. */
export function compareWithHeader(header: string, entries: readonly Entry[]): Comparison {
  const words = new Set(readFileSync(header, 'utf8').match(/[A-Za-z_]\w*/g) ?? []);
  const isKnown = ({ expression }: Entry): boolean => namesIn(expression).every((name) => words.has(name));
  const known = entries.filter(isKnown);
  const theirs = valuesOf(
    header,
    known.map(({ expression }) => expression),
  );
  return {
    different: known.flatMap(({ what, expression, ours }, at) =>
      theirs[at] === ours ? [] : [`${what}: ${ours}, and in the header ${expression} is ${theirs[at]}`],
    ),
    unknown: entries.filter((entry) => !isKnown(entry)).map(({ expression }) => expression),
    compared: known.length,
  };
}

function valuesOf(header: string, expressions: readonly string[]): readonly number[] {
  const folder = mkdtempSync(join(tmpdir(), 'device-agent-header-'));
  try {
    const [source, program] = [join(folder, 'print.c'), join(folder, 'print')];
    const lines = expressions.map((expression) => `  printf("%llu\\n", (unsigned long long)(${expression}));`);
    writeFileSync(
      source,
      `#include <stddef.h>\n#include <stdio.h>\n#include "nvml.h"\nint main(void) {\n${lines.join('\n')}\n  return 0;\n}\n`,
    );
    execFileSync('cc', ['-w', '-I', dirname(header), '-o', program, source], { stdio: ['ignore', 'ignore', 'pipe'] });
    return execFileSync(program, { encoding: 'utf8' }).trim().split('\n').map(Number);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
