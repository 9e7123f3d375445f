import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, readFile, readlink, stat } from 'node:fs/promises';
import { defined } from '../../model/defined.ts';

/** A file or directory that was opened without any step of the kernel over a symbolic link. */
export interface OpenedPath {
  /** The path as it was given. */
  readonly path: string;
  /** Names the file and cannot read it (`O_PATH`, open(2)): opening a pipe or a device this way has no effect on it. */
  readonly handle: FileHandle;
  /** Those of the open file. */
  readonly stats: Stats;
  /**
   * Why others than root and the user of this process can change the file, or which file the path names: `/srv can be written by others`.
   * Absent when they cannot, from `/` to the file.
   */
  readonly untrusted?: string;
}

/** A symbolic link at a place where others can put one. */
export class RefusedLink extends Error {}

/** Linux, include/uapi/asm-generic/fcntl.h. Node does not export it. */
const O_PATH = 0o10000000;
/** path_resolution(7): the kernel follows 40 links of a path at most. */
const MOST_LINKS = 40;
/** `S_ISVTX`: only root, the owner of an entry and the owner of the directory remove or rename the entry. */
const STICKY = 0o1000;

/**
 * Opens a path step by step from `/`. A link is followed when only root and the user of this process can change the link and everything
 * before it: so are `/var/run` and the links of a mounted ConfigMap (`file` -> `..data/file`). Throws {@link RefusedLink} for every other
 * link, and the errors of the system. The caller closes the handle.
 */
export async function openPath(path: string): Promise<OpenedPath> {
  let at = await step(path, undefined, '/', '');
  const names = path.split('/');
  for (let links = 0; names.length > 0; ) {
    const name = names.shift() as string;
    if (name === '' || name === '.') continue;
    const directory = at;
    try {
      at = await step(path, directory, descriptorPath(directory, name), name);
      if (!at.stats.isSymbolicLink()) continue;
      await at.handle.close();
      if (at.untrusted !== undefined) throw new RefusedLink(`it leads over the symbolic link ${name}: ${at.untrusted}`);
      links += 1;
      if (links > MOST_LINKS) throw Object.assign(new Error('too many symbolic links'), { code: 'ELOOP' });
      const target = await readlink(descriptorPath(directory, name));
      names.unshift(...target.split('/'));
      at = target.startsWith('/') ? await step(path, undefined, '/', '') : await step(path, directory, descriptorPath(directory, '.'), '.');
    } finally {
      await directory.handle.close();
    }
  }
  return at;
}

/**
 * Says why others than root and the user of this process can change what a directory has; undefined when they cannot, and when there is no such
 * directory.
 */
export async function whyUntrusted(directory: string): Promise<string | undefined> {
  try {
    const opened = await openPath(directory);
    await opened.handle.close();
    return opened.untrusted;
  } catch (error) {
    return error instanceof RefusedLink ? error.message : undefined;
  }
}

/** Opens an entry of an open directory. Throws {@link RefusedLink} for every link: a driver that writes there is often UID 0 too. */
export async function openEntry(directory: OpenedPath, name: string): Promise<OpenedPath> {
  const opened = await step(`${directory.path}/${name}`, directory, descriptorPath(directory, name), name);
  if (!opened.stats.isSymbolicLink()) return opened;
  await opened.handle.close();
  throw new RefusedLink('it is a symbolic link, and links are not followed here');
}

/** The open file as a path, or an entry of the open directory. Another process cannot replace it. */
export const descriptorPath = ({ handle }: Pick<OpenedPath, 'handle'>, name?: string): string =>
  `/proc/self/fd/${handle.fd}${name === undefined ? '' : `/${name}`}`;

async function step(path: string, directory: OpenedPath | undefined, place: string, name: string): Promise<OpenedPath> {
  const handle = await open(place, O_PATH | constants.O_NOFOLLOW).catch(async (error: unknown) => {
    // Without /proc every file would look absent.
    if (directory !== undefined) await stat(descriptorPath(directory)).catch(() => Promise.reject(new Error('/proc is not mounted')));
    throw error;
  });
  try {
    const stats = await handle.stat();
    const untrusted = directory?.untrusted ?? (await weakness(handle, stats, name));
    return { path, handle, stats, ...defined({ untrusted }) };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Access lists of POSIX show in the bits of the group too (acl(5)). The mode of a link has no meaning. */
async function weakness(handle: FileHandle, stats: Stats, name: string): Promise<string | undefined> {
  const { uid, mode } = stats;
  if (uid !== 0 && uid !== process.getuid?.()) return `${name || '/'} belongs to user ${uid}`;
  if (stats.isSymbolicLink() || (mode & 0o022) === 0) return undefined;
  if (stats.isDirectory() && ((mode & STICKY) !== 0 || (await isKubeletVolume(handle)))) return undefined;
  return `${name || '/'} can be written by others`;
}

/**
 * The kubelet creates the directory of such a volume with mode 0777, below a directory that only root can enter, and mounts it read-only
 * (kubernetes, pkg/volume/emptydir and pkg/volume/configmap). The root of the mount has the path on the node (proc_pid_mountinfo(5)).
 */
async function isKubeletVolume(handle: FileHandle): Promise<boolean> {
  const id = /^mnt_id:\s*(\d+)$/m.exec(await readFile(`/proc/self/fdinfo/${handle.fd}`, 'utf8'))?.[1];
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((line) => line.split(' '));
  const [, , , root = '', , options = ''] = mounts.find(([mount]) => mount === id) ?? [];
  return options.split(',').includes('ro') && /\/volumes\/kubernetes\.io~(?:configmap|secret|projected|downward-api)\//.test(root);
}
