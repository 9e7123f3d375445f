import type { TarEntry } from './tar.ts';

/** Limits of an archive that somebody else made. */
export const ARCHIVE_LIMITS = { mostBytes: 256 * 2 ** 20, mostEntryBytes: 16 * 2 ** 20, mostEntries: 200_000, mostPathBytes: 4_096 };

/** The fault of an archive. An error message for the user ends with its text: `it is cut off`. */
export class ArchiveProblem extends Error {}

const BLOCK = 512;

/** Reads the regular files of a tar archive. Throws {@link ArchiveProblem} for all that a capture does not have: links, odd paths, parts. */
export function unpackTar(archive: Buffer): readonly TarEntry[] {
  const entries: TarEntry[] = [];
  const paths = new Set<string>();
  let longPath: string | undefined;
  for (let at = 0; ; ) {
    const block = archive.subarray(at, at + BLOCK);
    if (block.length < BLOCK) throw new ArchiveProblem('it is cut off');
    if (block.every((byte) => byte === 0)) return entries;
    const { path, size, type } = headerOf(block);
    const bytes = archive.subarray(at + BLOCK, at + BLOCK + size);
    if (bytes.length < size) throw new ArchiveProblem('it is cut off');
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    if (type === 'x') {
      longPath = pathOf(bytes);
      continue;
    }
    const name = longPath ?? path;
    longPath = undefined;
    if (type === '5') continue;
    if (type !== '0' && type !== '\0') throw new ArchiveProblem(`${JSON.stringify(name.slice(0, 200))} is no regular file`);
    checkPath(name);
    if (paths.has(name)) throw new ArchiveProblem(`it has ${JSON.stringify(name.slice(0, 200))} twice`);
    paths.add(name);
    entries.push({ path: name, bytes });
    if (entries.length > ARCHIVE_LIMITS.mostEntries) throw new ArchiveProblem(`it has more than ${ARCHIVE_LIMITS.mostEntries} files`);
  }
}

/** Throws {@link ArchiveProblem} for a path that could leave the directory below which it is written. */
export function checkPath(path: string): void {
  const isPlain =
    path !== '' &&
    !path.startsWith('/') &&
    !path.includes('\0') &&
    Buffer.byteLength(path) <= ARCHIVE_LIMITS.mostPathBytes &&
    path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isPlain) throw new ArchiveProblem(`the path ${JSON.stringify(path.slice(0, 200))} is not allowed`);
}

/** Begins of the paths of a captured tree. Everything else below the directory of a replay belongs to the replay. */
const PLACES = /^(?:(?:sys|proc|dev|claims|cdi\d{1,3})(?:\/|$)|log(?:\/kmsg)?$|kubelet(?:\/checkpoint)?$)/;

/** As {@link checkPath}, for a path of a captured tree. */
export function checkTreePath(path: string): void {
  checkPath(path);
  if (!PLACES.test(path)) throw new ArchiveProblem(`the path ${JSON.stringify(path.slice(0, 200))} is not allowed`);
}

function headerOf(block: Buffer): { readonly path: string; readonly size: number; readonly type: string } {
  const text = (at: number, length: number): string => {
    const field = block.subarray(at, at + length);
    const end = field.indexOf(0);
    return field.toString('utf8', 0, end < 0 ? length : end);
  };
  const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0);
  if (Number.parseInt(text(148, 8).trim(), 8) !== sum || text(257, 5) !== 'ustar') throw new ArchiveProblem('it is no tar archive');
  const sizeText = text(124, 12).trim();
  const size = /^[0-7]{1,11}$/.test(sizeText) ? Number.parseInt(sizeText, 8) : Number.NaN;
  if (!(size <= ARCHIVE_LIMITS.mostEntryBytes))
    throw new ArchiveProblem(`a file in it is larger than ${ARCHIVE_LIMITS.mostEntryBytes} bytes`);
  const prefix = text(345, 155);
  return { path: prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`, size, type: String.fromCharCode(block[156] as number) };
}

/** The path of an extended header; undefined when it has none. */
function pathOf(bytes: Buffer): string | undefined {
  return /(?:^|\n)\d+ path=([^\n]*)\n/.exec(bytes.toString('utf8'))?.[1];
}
