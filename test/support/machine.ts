import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { compiledLibrary } from './compiled-library.ts';

/**
 * A machine as one readable file, `machine.yaml`. All paths are relative to the machine's root and start with `sys/`, `proc/`,
 * `dev/`, `share/` or `bin/`. In the file, a path that ends in a slash has several files or links below it:
 * `sys/class/nvme/nvme0/: { state: live, hwmon0/temp1_input: 36850 }`. Such a file has the text and a newline, an empty one nothing.
 */
export interface MachineFile {
  /** What is odd about this machine. */
  readonly about: string;
  /** Another machine of the family. This one has all that it has, but for what stands here: a file by its path, any other member as a whole. */
  readonly like?: string;
  /** Texts of its paths and contents that have another text here. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** Paths that it has, and this one has not. */
  readonly without?: readonly string[];
  /** It gives the same golden page and findings, so this one has no files of its own for them. */
  readonly isReadAlike?: boolean;
  /** Path to content. Content ends in one newline unless it is written with `|-` or quotes. */
  readonly files?: Readonly<Record<string, string>>;
  /** Binary files, by path. */
  readonly bytes?: Readonly<Record<string, BinaryFile>>;
  /** Symbolic links, path to target as written into the link. */
  readonly links?: Readonly<Record<string, string>>;
  /** Empty directories. */
  readonly directories?: readonly string[];
  /** Shared libraries: path to the C source, from the project's root, that each is made of. */
  readonly libraries?: Readonly<Record<string, string>>;
  /** FIFOs: opening one for reading hangs until somebody writes. */
  readonly fifos?: readonly string[];
  /** Options of the family; `{root}` stands for the machine's root. */
  readonly options?: Readonly<Record<string, string>>;
  /** How often it is read, a minute apart, before it is looked at: for what only a series of reads tells. Default 1. */
  readonly reads?: number;
  /** Files with another content before the last read, for what only a change tells. Needs `reads`. */
  readonly later?: Readonly<Record<string, string>>;
}

/** `fill` is the byte, in hexadecimal, of every place that `at` does not set. `at` maps an offset to bytes in hexadecimal. */
export interface BinaryFile {
  readonly size: number;
  readonly fill?: string;
  readonly at?: Readonly<Record<string, string>>;
}

export function binaryContent({ size, fill = '00', at = {} }: BinaryFile): Buffer {
  const bytes = Buffer.alloc(size, Number.parseInt(fill, 16));
  for (const [offset, hex] of Object.entries(at)) Buffer.from(hex, 'hex').copy(bytes, Number(offset));
  return bytes;
}

export interface Machine {
  readonly root: string;
  readonly options: Readonly<Record<string, string>>;
  /** Rewrites the files of `later`. */
  change(): void;
  remove(): void;
}

const BY_PATH = ['files', 'bytes', 'links', 'libraries', 'options', 'later'] as const;

/** What `machine.yaml` has: all scalars are texts, and paths may stand below the folder that they share. */
interface Written extends Omit<MachineFile, 'reads' | 'isReadAlike' | 'bytes' | Folded> {
  readonly reads?: string;
  readonly isReadAlike?: string;
  readonly bytes?: Readonly<Record<string, Omit<BinaryFile, 'size'> & { readonly size: string }>>;
  readonly files?: Tree;
  /** In the form of `files`, but the text is all that the file has. */
  readonly filesWithoutNewline?: Tree;
  readonly later?: Tree;
  readonly links?: Tree;
}
type Folded = 'files' | 'later' | 'links';
type Tree = Readonly<Record<string, string | Readonly<Record<string, string>>>>;

/** By whole path. */
function unfolded(tree: Tree | undefined, content: (text: string) => string = String): Record<string, string> {
  return Object.fromEntries(
    Object.entries(tree ?? {}).flatMap(([path, below]) =>
      typeof below === 'string' ? [[path, below]] : Object.entries(below).map(([name, text]) => [path + name, content(text)]),
    ),
  );
}

function read(path: string): MachineFile {
  const written = parse(readFileSync(path, 'utf8'), { schema: 'failsafe' }) as Written;
  const { files, filesWithoutNewline, later, links, bytes, reads, isReadAlike, ...others } = written;
  const line = (text: string): string => (text === '' ? '' : `${text}\n`);
  return {
    ...others,
    ...(reads === undefined ? {} : { reads: Number(reads) }),
    ...(isReadAlike === undefined ? {} : { isReadAlike: isReadAlike === 'true' }),
    files: { ...unfolded(files, line), ...unfolded(filesWithoutNewline) },
    later: unfolded(later, line),
    links: unfolded(links),
    bytes: Object.fromEntries(Object.entries(bytes ?? {}).map(([name, file]) => [name, { ...file, size: Number(file.size) }])),
  };
}

export function readMachine(path: string): MachineFile {
  const own = read(path);
  if (own.like === undefined) return own;
  const { renamed = {}, without = [] } = own;
  const text = JSON.stringify(readMachine(join(dirname(path), '..', own.like, 'machine.yaml')));
  const other = JSON.parse(Object.entries(renamed).reduce((all, [from, to]) => all.replaceAll(from, to), text)) as MachineFile;
  const members = BY_PATH.map((name) => {
    const all = Object.entries({ ...other[name], ...own[name] });
    return [name, Object.fromEntries(all.filter(([key]) => !without.includes(key)))] as const;
  });
  return { ...other, ...own, ...Object.fromEntries(members) };
}

/** Makes the machine's tree in a temporary directory. What is under `bin/` is executable. */
export function buildMachine(machine: MachineFile): Machine {
  const root = mkdtempSync(join(tmpdir(), 'device-agent-machine-'));
  const place = (path: string): string => {
    const full = join(root, path);
    mkdirSync(dirname(full), { recursive: true });
    return full;
  };
  for (const path of machine.directories ?? []) mkdirSync(join(root, path), { recursive: true });
  for (const [path, text] of Object.entries(machine.files ?? {})) {
    const full = place(path);
    writeFileSync(full, text);
    if (path.startsWith('bin/')) chmodSync(full, 0o755);
  }
  for (const [path, content] of Object.entries(machine.bytes ?? {})) writeFileSync(place(path), binaryContent(content));
  for (const [path, target] of Object.entries(machine.links ?? {})) symlinkSync(target, place(path));
  for (const [path, source] of Object.entries(machine.libraries ?? {})) copyFileSync(compiledLibrary(source), place(path));
  for (const path of machine.fifos ?? []) execFileSync('mkfifo', [place(path)]);
  const options = Object.fromEntries(
    Object.entries(machine.options ?? {}).map(([name, value]) => [name, value.replaceAll('{root}', root)]),
  );
  const change = (): void => {
    for (const [path, text] of Object.entries(machine.later ?? {})) writeFileSync(place(path), text);
  };
  return { root, options, change, remove: () => rmSync(root, { recursive: true, force: true }) };
}
