import { randomInt } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { lstat, mkdir, open, readdir, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/**
 * Replaces a file. After a kill or a power failure at any moment the file has the old or the new text, never a part. Creates the
 * directory. Resolves to what identifies the new file. Rejects with the error of the system, and then the old file stays. A device, a pipe or
 * a socket is not replaced: a node without `/dev/null` works no more.
 */
export async function replaceFile(path: string, text: string | Uint8Array): Promise<BigIntStats> {
  const directory = dirname(path);
  if (await isSpecial(path)) throw new Error(`${path} is a device, a pipe or a socket; name a file`);
  // During a rollover two agents may run in two containers with the same process id.
  const temporary = `${path}.${process.pid}${randomInt(1e9, 1e10)}.tmp`;
  let written: BigIntStats;
  try {
    written = await writeThrough(temporary, text).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      await makeDirectory(directory);
      return await writeThrough(temporary, text);
    });
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await syncDirectory(directory);
  return written;
}

/** Whether a path names a device, a pipe or a socket. */
export async function isSpecial(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => undefined);
  return stats !== undefined && !stats.isFile() && !stats.isDirectory() && !stats.isSymbolicLink();
}

/** Creates a directory and its parents. Node's recursive mkdir never ends below a directory whose mkdir fails with ENOENT (`/proc`). */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    await makeDirectory(dirname(path));
    await mkdir(path, { mode: 0o700 });
  }
}

async function writeThrough(path: string, text: string | Uint8Array): Promise<BigIntStats> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
    return await file.stat({ bigint: true });
  } finally {
    await file.close();
  }
}

/** Without this sync, a power failure could undo the rename. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Removes the temporary files of interrupted writes. */
export async function removeLeftovers(path: string): Promise<void> {
  const prefix = `${basename(path)}.`;
  const names = await readdir(dirname(path)).catch(() => []);
  const leftovers = names.filter((name) => name.startsWith(prefix) && /^\d+\.tmp$/.test(name.slice(prefix.length)));
  await Promise.all(leftovers.map((name) => unlink(join(dirname(path), name)).catch(() => undefined)));
}
