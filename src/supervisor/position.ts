import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { Step } from '../host/fs/step-guard.ts';

/** Where a reader is. */
export interface Position {
  /** Number of words that it has said; 0 while it starts. */
  readonly words: number;
  /** The step that it said last and has not left. */
  readonly step: Step | undefined;
}

const START: Position = { words: 0, step: undefined };
/** Longer than any path. */
const MOST_BYTES = 8_192;
/** No path has it. What an earlier word wrote behind it is over. */
const END = '\0';
/** `O_TMPFILE`: the file never has a name. */
const UNNAMED = 0x40_00_00 | constants.O_DIRECTORY | constants.O_RDWR;

/** Writes the position of this process. The write is over before the step begins, so the agent can read it while the step hangs. */
export function positionWriter(descriptor: number): (step: Step | undefined) => void {
  let words = 0;
  return (step) => {
    words += 1;
    writeSync(descriptor, `${words} ${step === undefined ? '' : `${step.kind} ${step.path}`}${END}`, 0);
  };
}

/** A file in memory in which a reader says where it is. The agent reads it only when it checks; each word through a pipe would wake it. */
export class PositionFile {
  /** For the reader; without a file it says nothing. */
  readonly descriptor: number | 'ignore';
  #last = START;
  #isClosed = false;

  constructor(directories: readonly string[] = ['/dev/shm', tmpdir()]) {
    this.descriptor = open(directories) ?? 'ignore';
  }

  read(): Position {
    if (this.descriptor === 'ignore' || this.#isClosed) return this.#last;
    const bytes = Buffer.allocUnsafe(MOST_BYTES);
    const text = bytes.toString('utf8', 0, readSync(this.descriptor, bytes, 0, MOST_BYTES, 0));
    const [, words, kind, path] = /^(\d+) (?:(file|call) (.*?))?\0/s.exec(text) ?? [];
    this.#last =
      words === undefined ? START : { words: Number(words), step: path === undefined ? undefined : { kind: kind as Step['kind'], path } };
    return this.#last;
  }

  /** The last position stays known. */
  close(): void {
    this.read();
    if (this.descriptor !== 'ignore' && !this.#isClosed) closeSync(this.descriptor);
    this.#isClosed = true;
  }
}

function open(directories: readonly string[]): number | undefined {
  for (const directory of directories) {
    let descriptor: number | undefined;
    try {
      descriptor = openSync(directory, UNNAMED, 0o600);
      // Takes the memory, so that a file system that becomes full later makes no word fail.
      writeSync(descriptor, Buffer.alloc(MOST_BYTES));
      return descriptor;
    } catch {
      // Another directory may do.
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }
  return undefined;
}
