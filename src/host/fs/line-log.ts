import { constants } from 'node:fs';
import { type FileHandle, unlink } from 'node:fs/promises';
import { systemWords } from '../../errors.ts';
import { defined } from '../../model/defined.ts';
import type { Clock } from '../clock.ts';
import { endsWithin } from '../clock.ts';
import { SingleFlight } from '../single-flight.ts';
import { createSegment, headerLine, openRegular, prune, type Segment, segmentsIn } from './log-segments.ts';
import { makeDirectory, syncDirectory } from './replace-file.ts';

export interface LineLogOptions {
  readonly directory: string;
  /** First part of the names of its files. The directory may have other files, which stay as they are. */
  readonly name: string;
  /** Version of the records. A file of a newer version is not read, not changed and not deleted. */
  readonly version: number;
  /** Records older than this are deleted, a whole file at a time. */
  readonly keepMs: number;
  /** Largest size of all files together. The oldest file goes first. */
  readonly maxBytes: number;
  readonly clock: Clock;
}

export interface LineLogRead {
  /** Lines that are no JSON object, such as one that a kill cut off. */
  readonly damagedLines: number;
  /** Files that a newer version of the agent wrote, and that were not read. */
  readonly newerFiles: number;
  /** What could not be read, in the words of the system. */
  readonly error?: string;
}

export interface LineLog {
  /**
   * Writes one line for each record and syncs it to the disk. Resolves to the error of the system, or to undefined. Never rejects. Records
   * that were not written wait for the next call, in their order; when too many wait, the oldest are dropped. After a failed write some
   * records can be in the log twice.
   */
  append(records: readonly object[]): Promise<string | undefined>;
  /**
   * Gives each record to `take`, in the order of writing. It skips files whose last write is older than `fromMs`, so that `take` can still
   * get older records. Never rejects.
   */
  read(fromMs: number, take: (record: Readonly<Record<string, unknown>>) => void): Promise<LineLogRead>;
  /** Number of records that were dropped, because too many waited or one was too long. */
  readonly dropped: number;
  /** Number of records that wait. */
  readonly waiting: number;
}

/** A hung disk must not stop its caller. */
const WRITE_TIMEOUT_MS = 5_000;
/** One of this many files is the unit of deletion. */
const SEGMENTS = 8;
/** Part of the log's size that may wait in memory. */
const WAITING_PART = 2;
const DAY_MS = 86_400_000;
const NEWLINE = 0x0a;

/**
 * An append-only log of JSON lines with bounds of age and size. Each file begins with a line that names the format and the version. A new
 * file begins each day (UTC), and when a file has an eighth of the largest size. Nothing is on disk before the first `append`.
 */
export function createLineLog(options: LineLogOptions): LineLog {
  return new SegmentedLog(options);
}

class SegmentedLog implements LineLog {
  readonly #options: LineLogOptions;
  readonly #segmentBytes: number;
  #lines: Buffer[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  /** The file that gets the next lines; undefined until the first write and after a failure. */
  #current: Pick<Segment, 'path' | 'startMs'> | undefined;
  readonly #writes = new SingleFlight(() => this.#writeAll());

  constructor(options: LineLogOptions) {
    this.#options = options;
    this.#segmentBytes = Math.floor(options.maxBytes / SEGMENTS);
  }

  get dropped(): number {
    return this.#dropped;
  }

  get waiting(): number {
    return this.#lines.length;
  }

  async append(records: readonly object[]): Promise<string | undefined> {
    for (const record of records) this.#enqueue(Buffer.from(`${JSON.stringify(record)}\n`));
    const running = this.#writes.again();
    if (await endsWithin(running, WRITE_TIMEOUT_MS, this.#options.clock)) return running;
    return `the disk has not answered for ${WRITE_TIMEOUT_MS / 1_000} s`;
  }

  async read(fromMs: number, take: (record: Readonly<Record<string, unknown>>) => void): Promise<LineLogRead> {
    const { directory, name, version } = this.#options;
    let damagedLines = 0;
    let newerFiles = 0;
    let error: string | undefined;
    const failed = (cause: unknown): void => {
      error ??= systemWords(cause);
    };
    const segments = await segmentsIn(directory, name).catch((cause) => {
      failed(cause);
      return [];
    });
    for (const segment of segments) {
      if (segment.version !== undefined && segment.version > version) newerFiles += 1;
      else if (segment.version === undefined) damagedLines += 1;
      else if (segment.writtenAtMs >= fromMs) {
        let isHeader = true;
        const takeLine = (line: string | undefined): void => {
          const record = isHeader || line === '' ? undefined : recordOf(line);
          if (record !== undefined) take(record);
          else if (!isHeader && line !== '') damagedLines += 1;
          isHeader = false;
        };
        await eachLine(segment.path, takeLine).catch(failed);
      }
    }
    return { damagedLines, newerFiles, ...defined({ error }) };
  }

  #enqueue(line: Buffer): void {
    if (line.length > this.#segmentBytes / 2) {
      this.#dropped += 1;
      return;
    }
    this.#lines.push(line);
    this.#waitingBytes += line.length;
    if (this.#waitingBytes <= this.#options.maxBytes / WAITING_PART) return;
    let count = 0;
    // A quarter at once: to move the rest for each dropped line would take long.
    while (this.#waitingBytes > (this.#options.maxBytes / WAITING_PART) * 0.75) {
      this.#waitingBytes -= (this.#lines[count] as Buffer).length;
      count += 1;
    }
    this.#lines = this.#lines.slice(count);
    this.#dropped += count;
  }

  async #writeAll(): Promise<string | undefined> {
    try {
      while (this.#lines.length > 0) {
        const batch = this.#batch();
        const bytes = batch.reduce((sum, line) => sum + line.length, 0);
        // The batch leaves the queue during the write, so that a full queue cannot drop what is being written.
        this.#lines = this.#lines.slice(batch.length);
        this.#waitingBytes -= bytes;
        try {
          await this.#write(batch, bytes);
        } catch (error) {
          this.#lines = [...batch, ...this.#lines];
          this.#waitingBytes += bytes;
          throw error;
        }
      }
      return undefined;
    } catch (error) {
      this.#current = undefined;
      return systemWords(error);
    }
  }

  /** The first lines that fit into half a file. */
  #batch(): Buffer[] {
    let bytes = 0;
    const end = this.#lines.findIndex((line) => {
      bytes += line.length;
      return bytes > this.#segmentBytes / 2;
    });
    return end < 0 ? this.#lines : this.#lines.slice(0, end);
  }

  async #write(batch: readonly Buffer[], bytes: number): Promise<void> {
    const file = (await this.#continued(bytes)) ?? (await this.#begun());
    try {
      const isCutOff = !(await endsWithNewline(file));
      await file.appendFile(Buffer.concat([...(isCutOff ? [Buffer.from('\n')] : []), ...batch]));
      await file.datasync();
    } finally {
      await file.close();
    }
  }

  /** The current file; undefined when a new one must begin. Another process may have filled or deleted it. */
  async #continued(bytes: number): Promise<FileHandle | undefined> {
    const { clock } = this.#options;
    this.#current ??= await this.#latest();
    const current = this.#current;
    if (current === undefined || dayOf(current.startMs) !== dayOf(clock.now())) return undefined;
    const file = await openRegular(current.path, constants.O_RDWR | constants.O_APPEND).catch(() => undefined);
    if (file === undefined) return undefined;
    if ((await file.stat()).size + bytes + 1 <= this.#segmentBytes) return file;
    await file.close();
    return undefined;
  }

  async #latest(): Promise<Segment | undefined> {
    const { directory, name, version } = this.#options;
    return (await segmentsIn(directory, name)).findLast((segment) => segment.version === version);
  }

  /** Begins a file, and makes room for all that it can hold. */
  async #begun(): Promise<FileHandle> {
    const { directory, name, version, keepMs, maxBytes, clock } = this.#options;
    const nowMs = clock.now();
    await makeDirectory(directory);
    await prune(await segmentsIn(directory, name), { oldestMs: nowMs - keepMs, maxBytes: maxBytes - this.#segmentBytes, version });
    const { path, file } = await createSegment(directory, name, nowMs);
    try {
      await file.appendFile(headerLine(name, version));
      await file.datasync();
      await syncDirectory(directory);
    } catch (error) {
      await file.close();
      // A file without a complete header cannot be used.
      await unlink(path).catch(() => undefined);
      throw error;
    }
    this.#current = { path, startMs: nowMs };
    return file;
  }
}

const dayOf = (timeMs: number): number => Math.floor(timeMs / DAY_MS);

async function endsWithNewline(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat();
  const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return bytesRead === 1 && buffer[0] === NEWLINE;
}

function recordOf(line: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (line === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

const PART_BYTES = 65_536;
/** A longer line counts as damaged, so that a damaged file cannot fill the memory. */
const MAX_LINE_BYTES = 1_048_576;

/**
 * Gives each line of a file, without its newline, to `take`; undefined for a line that is too long. Reads in small parts and waits for each,
 * so that other work of the process goes on meanwhile. Rejects with the error of the system.
 */
export async function eachLine(path: string, take: (line: string | undefined) => void): Promise<void> {
  const file = await openRegular(path, constants.O_RDONLY);
  try {
    let rest: Buffer = Buffer.alloc(0);
    let isTooLong = false;
    const end = (line: Buffer): void => {
      take(isTooLong ? undefined : line.toString('utf8'));
      isTooLong = false;
    };
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(PART_BYTES), 0, PART_BYTES, null);
      if (bytesRead === 0) break;
      let part: Buffer = rest.length === 0 ? buffer.subarray(0, bytesRead) : Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
      for (let at = part.indexOf(NEWLINE); at >= 0; at = part.indexOf(NEWLINE)) {
        end(part.subarray(0, at));
        part = part.subarray(at + 1);
      }
      isTooLong ||= part.length > MAX_LINE_BYTES;
      rest = isTooLong ? Buffer.alloc(0) : part;
    }
    if (rest.length > 0 || isTooLong) end(rest);
  } finally {
    await file.close();
  }
}
