import { execFileSync } from 'node:child_process';
import { closeSync, lstatSync, mkdirSync, openSync, readdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ArchiveProblem } from '../../capture/archive.ts';
import type { CapturedRead, Entry } from '../../capture/format.ts';
import { failing } from '../../host/recorded/replayed-tree.ts';

/** Has the time of the boot. */
const BOOT_FILE = 'proc/stat';

/**
 * Makes the files below a directory those of a read. Nothing is ever written outside of it. `kernelLog`: path of the log. `laterMs`: by how
 * much the boot of the machine is moved, so that records of the kernel log have the age that they had. `before`: the tree that the directory shows. Returns the pipes: their reads hang as
 * they hung.
 */
export function writeTree(
  root: string,
  { tree, kernelLog }: CapturedRead,
  logPath: string,
  { laterMs = 0, before = {} }: { readonly laterMs?: number; readonly before?: CapturedRead['tree'] } = {},
): readonly string[] {
  const paths = Object.keys(tree).sort();
  const pipes: string[] = [];
  // A directory comes before what is in it, so one that was looked at stays one.
  const directories = new Set<string>();
  removeOthers(root, '', new Set(paths));
  for (const path of paths) {
    const full = placeOf(root, path, directories);
    const entry = tree[path] as Entry;
    const isHung = 'error' in entry && entry.error === 'EHUNG';
    // A folder that was replaced lost what was in it.
    const isThere = path !== logPath && isDeepStrictEqual(entry, before[path]) && lstatSync(full, { throwIfNoEntry: false }) !== undefined;
    if (isHung) pipes.push(full);
    if (isThere) continue;
    if ('directory' in entry) makeDirectory(full);
    else if ('link' in entry) makeLink(full, path, entry.link);
    else if (path === logPath && 'file' in entry) writeInPlace(full, kernelLog.map((record) => `${record.trimEnd()}\n`).join(''));
    else if ('file' in entry) writeInPlace(full, path === BOOT_FILE ? movedBoot(entry.file, laterMs) : entry.file);
    else if ('base64' in entry) writeInPlace(full, Buffer.from(entry.base64, 'base64'));
    else if (isHung) {
      remove(full);
      execFileSync('mkfifo', [full]);
    }
    // The kernel's trees and its log fail with an errno. Of other files it counts only that they cannot be read.
    else if (/^E[A-Z0-9]+$/.test(entry.error)) writeInPlace(full, failing(entry.error));
    else makeDirectory(full);
  }
  return pipes;
}

/** Lets the reads of pipes end. Opening a pipe for reading and writing never waits, and gives its readers an end of file at the close. */
export function endReads(pipes: readonly string[]): void {
  for (const path of pipes) closeSync(openSync(path, 'r+'));
}

/** Begins of the trees; all else in the directory is of the replay itself. */
const PLACES = /^(?:sys|proc|dev|share|claims|cdi\d+|directory|log|kubelet\/checkpoint)(?:\/|$)/;

function removeOthers(root: string, folder: string, kept: ReadonlySet<string>): void {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (folder !== '' && PLACES.test(path) && !kept.has(path)) remove(join(root, path));
    else if (entry.isDirectory() && (folder !== '' || PLACES.test(path) || path === 'kubelet')) removeOthers(root, path, kept);
  }
}

/** Files change in place, like those of the kernel, so that an open descriptor sees the new content. */
function writeInPlace(full: string, content: Uint8Array | string): void {
  if (lstatSync(full, { throwIfNoEntry: false })?.isFile() === false) remove(full);
  writeFileSync(full, content);
}

function makeDirectory(full: string): void {
  if (lstatSync(full, { throwIfNoEntry: false })?.isDirectory() === true) return;
  remove(full);
  mkdirSync(full);
}

/**
 * A link must stay in the tree. `..` is allowed only at the beginning: behind another name it could follow a second link, and the text does
 * not show where it then leads.
 */
function makeLink(full: string, path: string, target: string): void {
  const parts = target.split('/');
  const up = parts.findIndex((part) => part !== '..');
  const ups = up < 0 ? parts.length : up;
  const isInside = !target.startsWith('/') && !parts.slice(ups).includes('..') && ups < path.split('/').length;
  if (!isInside || target === '' || target.includes('\0'))
    throw new ArchiveProblem(`the link ${JSON.stringify(path)} leads out of the capture`);
  remove(full);
  symlinkSync(target, full);
}

/** Full path of an entry whose parents are real directories. A link among them would lead to another place. */
function placeOf(root: string, path: string, directories: Set<string>): string {
  let at = root;
  const folder = dirname(path);
  for (const part of folder === '.' || directories.has(folder) ? [] : folder.split('/')) {
    at = join(at, part);
    const stats = lstatSync(at, { throwIfNoEntry: false });
    if (stats === undefined) mkdirSync(at);
    else if (!stats.isDirectory()) throw new ArchiveProblem(`${JSON.stringify(path)} is below something that is no directory`);
  }
  directories.add(folder);
  return join(root, path);
}

const movedBoot = (text: string, laterMs: number): string =>
  text.replace(/^btime (\d+)$/m, (_, seconds: string) => `btime ${Number(seconds) + Math.round(laterMs / 1_000)}`);

/** Removes an entry. Its files are emptied first: a descriptor that is still open must not give the content of a removed file. */
function remove(full: string): void {
  const stats = lstatSync(full, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) for (const name of readdirSync(full)) remove(join(full, name));
  if (stats?.isFile() === true) truncateSync(full);
  rmSync(full, { recursive: true, force: true });
}
