import { existsSync } from 'node:fs';
import { readUntrustedFile } from '../../host/fs/untrusted-file.ts';
import type { Host } from '../../host/host.ts';
import { normalizePciAddress } from '../../host/pci/pci.ts';
import { runCommand } from '../../host/process/command.ts';
import type { Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import { parseDuration } from '../../model/duration.ts';
import { isDue, type Pace } from '../kit/pace.ts';
import type { DeclaredCommand } from './declaration.ts';

/** Limit of rows of one output: one more than devices, so that it shows when devices are left out. */
const MOST_ROWS = 1_025;

/** One row of a command's output: an object of JSON, or the cells of a CSV line by column. */
export type Row = Readonly<Record<string, unknown>>;

/** Parses an output; undefined when it does not have the declared form. */
export function rowsOf(output: string, command: DeclaredCommand): readonly Row[] | undefined {
  return command.format === 'json' ? jsonRows(output, command.rows ?? '') : csvRows(output, command);
}

function jsonRows(output: string, pointer: string): readonly Row[] | undefined {
  let document: unknown;
  try {
    document = JSON.parse(output);
  } catch {
    return undefined;
  }
  const rows = at(document, pointer);
  if (!Array.isArray(rows)) return undefined;
  return rows.slice(0, MOST_ROWS).filter((row): row is Row => typeof row === 'object' && row !== null && !Array.isArray(row));
}

function csvRows(output: string, { columns, separator = ',' }: DeclaredCommand): readonly Row[] | undefined {
  const lines = output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const cells = (line: string): string[] => line.split(separator).map((cell) => cell.trim());
  const names = columns ?? cells(lines.shift() ?? '');
  const rows = lines.slice(0, MOST_ROWS).map(cells);
  // A line with another number of cells is a message or another version of the program, whose cells would be mistaken.
  if (rows.some((row) => row.length !== names.length)) return undefined;
  return rows.map((row) => Object.fromEntries(names.map((name, n) => [name, row[n]])));
}

/** The text of a cell: a JSON pointer, or a column. Undefined for an absent cell, null, an object or a list. */
function cellOf(row: Row, place: string): string | undefined {
  return textOf(place.startsWith('/') ? at(row, place) : own(row, place));
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;

/** The texts of a cell; a list gives each of its cells. */
export function cellsOf(row: Row, place: string): readonly string[] {
  const value = place.startsWith('/') ? at(row, place) : own(row, place);
  return (Array.isArray(value) ? value : [value]).map(textOf).filter((text) => text !== undefined);
}

/** The row whose key cell has a text. PCI addresses are equal in every spelling. */
export function rowWith(rows: readonly Row[], key: string, text: string): Row | undefined {
  const wanted = normalizePciAddress(text) ?? text;
  const fitting = rows.filter((row) => {
    const cell = cellOf(row, key);
    return cell !== undefined && (cell === text || normalizePciAddress(cell) === wanted);
  });
  // Two rows for one device contradict each other.
  return fitting.length === 1 ? fitting[0] : undefined;
}

function at(document: unknown, pointer: string): unknown {
  let value = document;
  for (const step of pointer.split('/').slice(1)) value = own(value, step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return value;
}

const own = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Readonly<Record<string, unknown>>)[key] : undefined;

/** Limit of the output of one run. A row has a hundred cells at most. */
const MOST_BYTES = 1_048_576;
/** Deadline of a program that declares none. */
export const TIMEOUT_MS = 3_000;

/** Runs the programs of a declaration, each at its own interval, and keeps their rows. */
export class CommandRows {
  readonly #host: Host;
  readonly #commands: readonly (readonly [string, DeclaredCommand])[];
  /** Paths that the configuration sets, by name of the command. */
  readonly #paths: Readonly<Record<string, string>>;
  readonly #states = new Map<
    string,
    { rows: readonly Row[] | undefined; problem: Problem | undefined; atMs: number; running?: Promise<void> }
  >();

  constructor(host: Host, commands: Readonly<Record<string, DeclaredCommand>>, paths: Readonly<Record<string, string>>) {
    this.#host = host;
    this.#commands = Object.entries(commands);
    this.#paths = paths;
  }

  /** Runs the programs whose interval is over, one after the other. */
  async update(pace: Pace): Promise<void> {
    for (const [name, command] of this.#commands) {
      const state = this.#states.get(name);
      const every = parseDuration(command.every ?? '0') ?? 0;
      // A program that even SIGKILL did not end sleeps in the kernel; a second one would sleep there too.
      if (state !== undefined && (state.running !== undefined || !isDue(state.atMs, every, pace))) continue;
      await this.#run(name, command, pace.nowMs);
    }
  }

  /** The rows of the last run; undefined when it failed. */
  rows(name: string): readonly Row[] | undefined {
    return this.#states.get(name)?.rows;
  }

  /** Monotonic clock of the last run. */
  ranMs(name: string): number | undefined {
    return this.#states.get(name)?.atMs;
  }

  /** The cell that names the device of a row. */
  keyOf(name: string): string | undefined {
    return this.#commands.find(([each]) => each === name)?.[1].key;
  }

  /** Some program did not run or gave no rows, so that devices may exist which only its output names. */
  get areIncomplete(): boolean {
    return this.problems.length > 0;
  }

  get problems(): readonly Problem[] {
    return [...this.#states.values()].flatMap(({ problem }) => problem ?? []);
  }

  /** The command in messages: path and arguments. */
  nameOf(name: string): string {
    const command = this.#commands.find(([each]) => each === name)?.[1];
    return command === undefined ? name : [this.#pathOf(name, command), ...(command.args ?? [])].join(' ');
  }

  #pathOf(name: string, command: DeclaredCommand): string {
    return this.#paths[name] || command.path;
  }

  async #run(name: string, command: DeclaredCommand, atMs: number): Promise<void> {
    const keep = (rows: readonly Row[] | undefined, code?: string, what?: string, running?: Promise<void>): void => {
      const problem = code === undefined ? undefined : { code, message: `${this.nameOf(name)}: ${what}` };
      const state = { rows, problem, atMs, ...defined({ running }) };
      this.#states.set(name, state);
      void running?.then(() => this.#states.delete(name));
    };
    const take = (output: string): void => {
      const rows = rowsOf(output, command);
      if (rows === undefined) keep(undefined, 'command-output-invalid', `the output is not ${command.format} of the declared form`);
      else keep(rows);
    };
    const absent = (): void =>
      command.optional === true ? keep(undefined) : keep(undefined, 'command-failed', 'there is no such program');
    if (command.captured !== undefined) {
      const { text } = await readUntrustedFile(command.captured, MOST_BYTES);
      return text === undefined ? absent() : take(text);
    }
    const path = this.#pathOf(name, command);
    if (command.optional === true && !existsSync(path)) return absent();
    const { stdout, exitCode, failure, stillRunning } = await runCommand(path, command.args ?? [], {
      deadlineMs: parseDuration(command.timeout ?? '') ?? TIMEOUT_MS,
      maxOutputBytes: MOST_BYTES,
      children: this.#host.children,
      clock: this.#host.clock,
      observe: this.#host.observe,
    });
    if (failure === 'not-found') absent();
    else if (failure !== undefined) keep(undefined, 'command-failed', FAILURES[failure], stillRunning);
    else if (exitCode !== 0) keep(undefined, 'command-failed', `it ended with status ${exitCode ?? 'unknown'}`);
    else take(stdout);
  }
}

const FAILURES = {
  permission: 'it may not be run',
  'failed-to-start': 'it did not start',
  timeout: 'it took too long',
  'too-large': 'its output is too large',
} as const;
