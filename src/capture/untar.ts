import { isEntryName } from './entry-name.ts';
import type { TarEntry } from './tar.ts';

/** Limits of an archive that somebody else made. */
export const ARCHIVE_LIMITS = { mostBytes: 256 * 2 ** 20, mostEntryBytes: 16 * 2 ** 20, mostEntries: 200_000 };

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
    // The name of a directory ends with a slash.
    if (!isEntryName(type === '5' ? name.replace(/\/$/, '') : name)) throw pathProblem(name);
    if (type === '5') continue;
    if (type !== '0' && type !== '\0') throw new ArchiveProblem(`${JSON.stringify(name.slice(0, 200))} is no regular file`);
    if (paths.has(name)) throw new ArchiveProblem(`it has ${JSON.stringify(name.slice(0, 200))} twice`);
    paths.add(name);
    entries.push({ path: name, bytes });
    if (entries.length > ARCHIVE_LIMITS.mostEntries) throw new ArchiveProblem(`it has more than ${ARCHIVE_LIMITS.mostEntries} files`);
  }
}

/** The problem of a path that {@link isEntryName} or {@link isTreePath} refuses. */
export const pathProblem = (path: string): ArchiveProblem =>
  new ArchiveProblem(`the path ${JSON.stringify(path.slice(0, 200))} is not allowed`);

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
