import { statSync } from 'node:fs';
import { open, readFile, rename, unlink } from 'node:fs/promises';
import { unpackCapture } from '../capture/archive.ts';
import type { Capture } from '../capture/frame.ts';
import { ARCHIVE_LIMITS, ArchiveProblem } from '../capture/untar.ts';
import { systemWords, UserError } from '../errors.ts';

/** Reads an archive. Throws a {@link UserError} for a file that is no capture. */
export async function readCapture(file: string): Promise<Capture> {
  try {
    const stats = statSync(file);
    if (!stats.isFile()) throw new ArchiveProblem('it is no regular file');
    if (stats.size > ARCHIVE_LIMITS.mostBytes) throw new ArchiveProblem(`it is larger than ${ARCHIVE_LIMITS.mostBytes} bytes`);
    return unpackCapture(await readFile(file));
  } catch (error) {
    throw captureFault(file, error);
  }
}

/** A problem of the archive, or of the system with its file, as an error that the user can act on. Any other error stays. */
export function captureFault(file: string, error: unknown): unknown {
  const isSystem = typeof (error as NodeJS.ErrnoException | undefined)?.errno === 'number';
  if (error instanceof ArchiveProblem) return new UserError('capture-unreadable', { file, problem: error.message }, error);
  return isSystem ? new UserError('capture-unreadable', { file, problem: systemWords(error) }, error) : error;
}

/** Writes an archive that only its owner can read. Throws a {@link UserError}; then there is no part of the archive. */
export async function writeCapture(file: string, bytes: Buffer): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw new UserError('capture-unwritable', { file, problem: systemWords(error) }, error);
  }
}
