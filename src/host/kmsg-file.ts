import { closeSync, fstatSync, readSync, type Stats, statSync } from 'node:fs';
import { errnoName } from './fs/tree.ts';
import { isContinuation } from './kmsg-record.ts';
import type { KmsgSource, SourceEnd } from './kmsg-source.ts';

const CHUNK_BYTES = 65_536;
/** Of one pass. */
const BYTES_PER_PASS = 16 * 1_024 * 1_024;
/** A line without an end that grows beyond this is no record. */
const LINE_BYTES = 65_536;
/** So many of the last bytes are compared to tell a log that was written anew from another one. */
const TAIL_BYTES = 1_024;
/** Who rewrites a file empties it first: a file is not judged as shorter until it has been for this long. */
const SHRUNK_FOR_MS = 400;

/** Where a reader stands in a file: enough to go on in a copy of it. */
export interface FilePosition {
  readonly offset: number;
  /** The bytes just before `offset`. */
  readonly tail: Buffer;
}

const NOTHING = Buffer.alloc(0);
const LINE_FEED = 0x0a;

export const FILE_START: FilePosition = { offset: 0, tail: NOTHING };

/**
 * Follows an ordinary file in the format of `/dev/kmsg`: complete lines only, whatever is appended, and across truncation and
 * replacement. A file that was written anew with the same beginning goes on where the reader stood; any other begins anew.
 * Continuation lines count when they arrive together with their record.
 */
export class KmsgFile implements KmsgSource {
  readonly isDevice = false;
  readonly #path: string;
  readonly #fd: number;
  readonly #monotonic: () => number;
  readonly #identity: string;
  #position: FilePosition;
  /** Bytes, since a read may end within a character. */
  #partial: Buffer = NOTHING;
  #seen = '';
  #shrunkAtMs: number | undefined;

  constructor(options: { readonly path: string; readonly fd: number; readonly from: FilePosition; monotonic(): number }) {
    this.#path = options.path;
    this.#fd = options.fd;
    this.#monotonic = options.monotonic;
    this.#identity = identityOf(fstatSync(options.fd));
    this.#position = options.from;
  }

  /** Where a file that takes this one's place would go on. */
  get position(): FilePosition {
    const unfinished = this.#partial.length;
    const { offset, tail } = this.#position;
    return { offset: offset - unfinished, tail: tail.subarray(0, Math.max(0, tail.length - unfinished)) };
  }

  read(onRecord: (record: string) => void): SourceEnd {
    try {
      const inPlace = this.#inPlace();
      const { size, mtimeMs } = inPlace ?? fstatSync(this.#fd);
      const seen = `${size} ${mtimeMs}`;
      if (seen !== this.#seen || size < this.#position.offset) {
        if (!this.#find(size)) return { state: 'drained' };
        this.#seen = seen;
      }
      const more = this.#readLines(size, onRecord);
      // What was written to the old file before it was replaced has been read by now.
      if (!more && inPlace === undefined) return { state: 'failed', error: 'ESTALE' };
      return { state: more ? 'more' : 'drained' };
    } catch (error) {
      return { state: 'failed', error: errnoName(error) };
    }
  }

  close(): void {
    closeSync(this.#fd);
  }

  /** Puts the position right after the content changed; false while that cannot be told yet. */
  #find(size: number): boolean {
    if (size < this.#position.offset) {
      this.#shrunkAtMs ??= this.#monotonic();
      if (this.#monotonic() - this.#shrunkAtMs < SHRUNK_FOR_MS) return false;
    }
    this.#shrunkAtMs = undefined;
    if (size < this.#position.offset || !this.#continuesHere()) {
      this.#position = FILE_START;
      this.#partial = NOTHING;
    }
    return true;
  }

  #continuesHere(): boolean {
    const { offset, tail } = this.#position;
    if (offset > 0 && tail.length === 0) return false;
    const found = Buffer.alloc(tail.length);
    return readSync(this.#fd, found, 0, tail.length, offset - tail.length) === tail.length && found.equals(tail);
  }

  #readLines(size: number, onRecord: (record: string) => void): boolean {
    const lines: string[] = [];
    const end = Math.min(size, this.#position.offset + BYTES_PER_PASS);
    while (this.#position.offset < end) {
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, end - this.#position.offset));
      const length = readSync(this.#fd, chunk, 0, chunk.length, this.#position.offset);
      if (length === 0) break;
      const bytes = chunk.subarray(0, length);
      this.#position = { offset: this.#position.offset + length, tail: lastBytes(this.#position.tail, bytes) };
      lines.push(...this.#completeLines(bytes));
    }
    for (const record of recordsOf(lines)) onRecord(record);
    return this.#position.offset < size;
  }

  /** Keeps what follows the last line feed for later. */
  #completeLines(bytes: Buffer): readonly string[] {
    const all = this.#partial.length === 0 ? bytes : Buffer.concat([this.#partial, bytes]);
    const end = all.lastIndexOf(LINE_FEED);
    const rest = all.subarray(end + 1);
    this.#partial = rest.length > LINE_BYTES ? Buffer.from(rest.subarray(-1)) : rest;
    return end < 0 ? [] : all.toString('utf8', 0, end).split('\n');
  }

  /** What the path shows, where that still is the open file. */
  #inPlace(): Stats | undefined {
    try {
      const stats = statSync(this.#path);
      return identityOf(stats) === this.#identity ? stats : undefined;
    } catch {
      return undefined;
    }
  }
}

function lastBytes(before: Buffer, added: Buffer): Buffer {
  const joined = added.length >= TAIL_BYTES ? added : Buffer.concat([before, added]);
  return Buffer.from(joined.subarray(-TAIL_BYTES));
}

function recordsOf(lines: readonly string[]): readonly string[] {
  const records: string[] = [];
  for (const line of lines) {
    if (line === '') continue;
    const last = records.at(-1);
    if (!isContinuation(line)) records.push(line);
    else if (last !== undefined) records[records.length - 1] = `${last}\n${line}`;
  }
  return records;
}

function identityOf(stats: { readonly dev: number; readonly ino: number }): string {
  return `${stats.dev}:${stats.ino}`;
}
