import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { Step } from '../host/fs/step-guard.ts';

/** Where a reader is. */
export interface Position {
  /** Number of times that it has written where it is; 0 while it starts. */
  readonly writes: number;
  /** The step that it said last and has not left. */
  readonly step: Step | undefined;
}

const START: Position = { writes: 0, step: undefined };
/** Longer than any path. */
const MOST_BYTES = 8_192;
/** Ends a position. No path contains it. What follows is the rest of an earlier, longer position. */
const END = '\0';
/** `O_TMPFILE`: the file never has a name. */
const UNNAMED = 0x40_00_00 | constants.O_DIRECTORY | constants.O_RDWR;

/** Writes the position of this process. The write is over before the step begins, so the agent can read it while the step hangs. */
export function positionWriter(descriptor: number): (step: Step | undefined) => void {
  let writes = 0;
  return (step) => {
    writes += 1;
    writeSync(descriptor, `${writes} ${step === undefined ? '' : `${step.kind} ${step.path}`}${END}`, 0);
  };
}

/** A file in memory in which a reader says where it is. The agent reads it only when it checks; each message through a pipe would wake it. */
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
    const [, writes, kind, path] = /^(\d+) (?:(file|call) (.*?))?\0/s.exec(text) ?? [];
    this.#last =
      writes === undefined
        ? START
        : { writes: Number(writes), step: path === undefined ? undefined : { kind: kind as Step['kind'], path } };
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
      // Takes the memory, so that no later write fails because the file system is full.
      writeSync(descriptor, Buffer.alloc(MOST_BYTES));
      return descriptor;
    } catch {
      // Another directory may do.
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }
  return undefined;
}
