import { constants } from 'node:fs';
import { type FileHandle, open, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';

/** One file of a log. */
export interface Segment {
  readonly path: string;
  /** Wall clock at which it was begun, from its name. Whole seconds. */
  readonly startMs: number;
  readonly bytes: number;
  /** Wall clock of its last write. */
  readonly writtenAtMs: number;
  /** Undefined when the first line is no header: a kill cut it off, or the disk damaged it. */
  readonly version: number | undefined;
}

/** Another program may put a link or a pipe where a segment was: a link is not followed, and the open of a pipe does not wait. */
export const SAFE = constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
const MAX_HEADER_BYTES = 256;
const SECOND_MS = 1_000;

export const headerLine = (name: string, version: number): string => `${JSON.stringify({ format: formatOf(name), version })}\n`;

const formatOf = (name: string): string => `device-agent-${name}`;

/** The segments in a directory, oldest first. Other files and entries that are no regular files are left out. Rejects when it cannot be listed. */
export async function segmentsIn(directory: string, name: string): Promise<readonly Segment[]> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const found: Segment[] = [];
  for (const entry of names.sort()) {
    const startMs = startOf(entry, name);
    if (startMs === undefined) continue;
    const path = join(directory, entry);
    const segment = await lookAt(path, name, startMs);
    if (segment !== undefined) found.push(segment);
  }
  return found;
}

/** Undefined for an entry that is no regular file, cannot be read, or went away. */
async function lookAt(path: string, name: string, startMs: number): Promise<Segment | undefined> {
  const file = await openRegular(path, constants.O_RDONLY).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const { size, mtimeMs } = await file.stat();
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_HEADER_BYTES), 0, MAX_HEADER_BYTES, 0);
    const [first = ''] = buffer.toString('utf8', 0, bytesRead).split('\n');
    return { path, startMs, bytes: size, writtenAtMs: mtimeMs, version: versionOf(first, name) };
  } catch {
    return undefined;
  } finally {
    await file.close().catch(() => undefined);
  }
}

/** Version of a header line; undefined for any other line. */
export function versionOf(line: string, name: string): number | undefined {
  try {
    const header = JSON.parse(line) as { format?: unknown; version?: unknown } | null;
    return header?.format === formatOf(name) && Number.isSafeInteger(header.version) ? (header.version as number) : undefined;
  } catch {
    return undefined;
  }
}

/** Opens a file that must be a regular one. Rejects with the error of the system. */
export async function openRegular(path: string, flags: number): Promise<FileHandle> {
  const file = await open(path, flags | SAFE);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw Object.assign(new Error(`${path}: not a regular file`), { code: 'ENOTSUP' });
}

/** Creates an empty segment. Its name has the next free second, because two segments can begin in one second. */
export async function createSegment(directory: string, name: string, nowMs: number): Promise<{ path: string; file: FileHandle }> {
  const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_EXCL | SAFE;
  for (let startMs = nowMs - (nowMs % SECOND_MS); ; startMs += SECOND_MS) {
    const path = join(directory, segmentName(name, startMs));
    try {
      return { path, file: await open(path, flags, 0o600) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/**
 * Deletes what is too old, and the oldest segments until the rest fits. A segment of a newer version stays: a newer agent wrote it and may
 * come back. A segment that cannot be deleted counts as gone, because the next call tries again.
 */
export async function prune(
  segments: readonly Segment[],
  limits: { readonly oldestMs: number; readonly maxBytes: number; readonly version: number },
): Promise<void> {
  const own = segments.filter(({ version = 0 }) => version <= limits.version);
  let bytes = own.reduce((sum, segment) => sum + segment.bytes, 0);
  for (const segment of own) {
    if (segment.writtenAtMs >= limits.oldestMs && bytes <= limits.maxBytes) continue;
    await unlink(segment.path).catch(() => undefined);
    bytes -= segment.bytes;
  }
}

/** `usage-20261123T203000Z.jsonl` */
const segmentName = (name: string, startMs: number): string =>
  `${name}-${new Date(startMs).toISOString().replace(/[-:]|\.\d+/g, '')}.jsonl`;

function startOf(entry: string, name: string): number | undefined {
  if (!entry.startsWith(`${name}-`)) return undefined;
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.jsonl$/.exec(entry.slice(name.length + 1));
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second] = match;
  const startMs = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(startMs) ? undefined : startMs;
}
