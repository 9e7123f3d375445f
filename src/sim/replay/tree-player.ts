import { execFileSync } from 'node:child_process';
import { appendFileSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CHECKPOINT, type Frame } from '../../capture/frame.ts';
import { ArchiveProblem } from '../../capture/untar.ts';

/** A file that is larger than every limit of the agent. It has no blocks on disk. */
const HUGE_BYTES = 64 * 2 ** 20;
/** Has the time of the boot. */
const BOOT_FILE = 'proc/stat';
/** Reads of files outside the kernel's trees have words in place of an errno name. */
const OUTSIDE: readonly string[] = ['not-a-file', 'unreadable', 'timeout'];

/** Writes the frames of a capture as files below a directory. Nothing is ever written outside of it. */
export class TreePlayer {
  readonly #root: string;
  readonly #laterMs: number;
  /** File of the errors that reads must give. */
  readonly errorsFile: string;
  readonly #hanging = new Set<string>();

  /** `laterMs`: by how much the boot of the machine is moved, so that records of the kernel log have the age that they had. */
  constructor(root: string, laterMs = 0) {
    this.#root = root;
    this.#laterMs = laterMs;
    this.errorsFile = join(root, 'recorded-errors');
  }

  apply(frame: Frame, kernelLog: string | undefined): void {
    for (const path of frame.removed) remove(this.#place(path));
    for (const path of frame.directories) this.#directory(path);
    for (const [path, target] of Object.entries(frame.links)) this.#link(path, target);
    for (const path of frame.unread) this.#write(path, '');
    for (const [path, bytes] of Object.entries(frame.files))
      if (path !== kernelLog) this.#write(path, path === BOOT_FILE ? this.#movedBoot(bytes) : bytes);
    if (kernelLog !== undefined) this.#log(kernelLog, frame.kernelLog);
    for (const [path, errno] of Object.entries(frame.errors)) this.#fail(path, errno);
    const lines = Object.entries(frame.errors).filter(
      ([path, errno]) => path === CHECKPOINT || (/^E[A-Z0-9]+$/.test(errno) && errno !== 'EHUNG'),
    );
    this.#replace(this.errorsFile, lines.map(([path, errno]) => `${errno} ${join(this.#root, path)}\n`).join(''));
  }

  /** Removes the pipes, so that no later read hangs. A read that hangs already ends. */
  release(): void {
    for (const path of this.#hanging) {
      try {
        // Opening a pipe for reading and writing never waits, and gives the reader an end of file when it is closed.
        writeFileSync(path, '', { flag: 'r+' });
      } catch {
        // Nobody waits.
      }
      rmSync(path, { force: true });
    }
    this.#hanging.clear();
  }

  /** A read that hung on the machine hangs here. Every other failure is in the file of the errors. */
  #fail(path: string, errno: string): void {
    const full = this.#place(path);
    if (errno === 'EHUNG') {
      if (lstatSync(full, { throwIfNoEntry: false })?.isFIFO() === true) return;
      remove(full);
      execFileSync('mkfifo', [full]);
      this.#hanging.add(full);
    } else if (errno === 'too-large') {
      this.#write(path, '');
      truncateSync(full, HUGE_BYTES);
    } else if (OUTSIDE.includes(errno)) {
      this.#directory(path);
    }
  }

  #movedBoot(bytes: Uint8Array): string {
    const later = Math.round(this.#laterMs / 1_000);
    return Buffer.from(bytes)
      .toString('utf8')
      .replace(/^btime (\d+)$/m, (_, seconds: string) => `btime ${Number(seconds) + later}`);
  }

  /** Files change in place, like those of the kernel, so that an open descriptor sees the new content. */
  #write(path: string, content: Uint8Array | string): void {
    const full = this.#place(path);
    const stats = lstatSync(full, { throwIfNoEntry: false });
    if (stats !== undefined && !stats.isFile()) remove(full);
    this.#hanging.delete(full);
    writeFileSync(full, content);
  }

  #log(path: string, records: readonly string[]): void {
    if (records.length === 0) return;
    const full = this.#place(path);
    if (lstatSync(full, { throwIfNoEntry: false })?.isFile() !== true) this.#write(path, '');
    appendFileSync(full, records.map((record) => (record.endsWith('\n') ? record : `${record}\n`)).join(''));
  }

  /**
   * A link must stay in the tree. `..` is allowed only at the beginning: behind another name it could follow a second link, and the
   * text does not show where it then leads.
   */
  #link(path: string, target: string): void {
    const parts = target.split('/');
    const up = parts.findIndex((part) => part !== '..');
    const ups = up < 0 ? parts.length : up;
    const isInside = !target.startsWith('/') && !parts.slice(ups).includes('..') && ups < path.split('/').length;
    if (!isInside || target === '' || target.includes('\0'))
      throw new ArchiveProblem(`the link ${JSON.stringify(path)} leads out of the capture`);
    const full = this.#place(path);
    remove(full);
    symlinkSync(target, full);
  }

  #directory(path: string): void {
    const full = this.#place(path);
    if (lstatSync(full, { throwIfNoEntry: false })?.isDirectory() === true) return;
    remove(full);
    mkdirSync(full);
  }

  /** Full path of an entry whose parents are real directories. A link among them would lead to another place. */
  #place(path: string): string {
    let at = this.#root;
    for (const part of dirname(path) === '.' ? [] : dirname(path).split('/')) {
      at = join(at, part);
      const stats = lstatSync(at, { throwIfNoEntry: false });
      if (stats === undefined) mkdirSync(at);
      else if (!stats.isDirectory()) throw new ArchiveProblem(`${JSON.stringify(path)} is below something that is no directory`);
    }
    return join(this.#root, path);
  }

  #replace(full: string, text: string): void {
    writeFileSync(`${full}.new`, text);
    renameSync(`${full}.new`, full);
  }
}

/** Removes an entry. Its files are emptied first: a descriptor that is still open must not give the content of a removed file. */
function remove(full: string): void {
  const stats = lstatSync(full, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) for (const name of readdirSync(full)) remove(join(full, name));
  if (stats?.isFile() === true) truncateSync(full);
  rmSync(full, { recursive: true, force: true });
}
