import { closeSync, openSync, statSync, unlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { ARCHIVE_BOUNDS, ArchiveProblem, unpackCapture } from '../../capture/archive.ts';
import type { Capture } from '../../capture/format.ts';
import { systemWords, UserError } from '../../errors.ts';
import { replaceFile } from '../../host/fs/replace-file.ts';
import { visible } from '../../model/one-line.ts';
import type { Output } from '../output.ts';

/** Reads an archive. Throws a {@link UserError} for a file that is no capture. */
export async function readCapture(file: string): Promise<Capture> {
  try {
    const stats = statSync(file);
    if (!stats.isFile()) throw new ArchiveProblem('it is no regular file');
    if (stats.size > ARCHIVE_BOUNDS.mostBytes) throw new ArchiveProblem(`it is larger than ${ARCHIVE_BOUNDS.mostBytes} bytes`);
    return unpackCapture(await readFile(file));
  } catch (error) {
    throw captureFault(file, error);
  }
}

/** What is wrong with the archive, or with its file for the system; undefined for any other error. */
export function archiveProblem(error: unknown): string | undefined {
  if (error instanceof ArchiveProblem) return error.message;
  return typeof (error as NodeJS.ErrnoException | undefined)?.errno === 'number' ? systemWords(error) : undefined;
}

/** An error that the user can act on, for a file that is no capture or that the system does not read. Any other error stays. */
export function captureFault(file: string, error: unknown): unknown {
  const { code, path } = (error ?? {}) as NodeJS.ErrnoException;
  if (code === 'ENOENT' && path === file) return new UserError('file-absent', { file }, error);
  const problem = archiveProblem(error);
  return problem === undefined ? error : new UserError('capture-unreadable', { file, problem }, error);
}

const temporaryOf = (file: string): string => `${file}.${process.pid}.tmp`;

/** Destination of a capture. */
export interface CaptureTarget {
  write(bytes: Buffer): Promise<void>;
  /** Says what was written, where it does not get into the archive. */
  report(what: string, output: Output): Promise<void>;
}

/** Opens the target of `-o`: a file, or `-` for the standard output. Throws a {@link UserError} at once where nothing can be written. */
export function captureTarget(file: string): CaptureTarget {
  if (file === '-') {
    if (process.stdout.isTTY) throw new UserError('capture-unwritable', { file: '-', problem: 'the standard output is a terminal' });
    return {
      write: (bytes) => writeToStdout(bytes),
      report: async (what) => void process.stderr.write(`${what}\n`),
    };
  }
  try {
    // Rights alone are not sufficient: a file system can refuse new files also to root.
    closeSync(openSync(temporaryOf(file), 'wx', 0o600));
    unlinkSync(temporaryOf(file));
    // Only a file is replaced: a node without `/dev/null` works no more.
    if (statSync(file, { throwIfNoEntry: false })?.isFile() === false) throw new Error('it is no regular file');
  } catch (error) {
    throw new UserError('capture-unwritable', { file, problem: systemWords(error) }, error);
  }
  return {
    write: async (bytes) => void (await replaceFile(file, bytes)),
    report: (what, output) => output.write(`${visible(file)}: ${what}\n`),
  };
}

/** It also fails when the reader has closed the pipe, because an incomplete archive is useless. */
function writeToStdout(bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(bytes, (error) => {
      if (error === undefined || error === null) resolve();
      else reject(new UserError('capture-unwritable', { file: '-', problem: systemWords(error) }, error));
    });
  });
}
