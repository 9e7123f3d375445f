/** One regular file of an archive. */
export interface TarEntry {
  /** Path with slashes, relative. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

const BLOCK = 512;
/** Lengths of the fields for a name in a ustar header. Source: POSIX.1-2017, pax, "ustar Interchange Format". */
const NAME = 100;
const PREFIX = 155;

/** Packs regular files as a ustar archive. A path that does not fit into its header gets an extended header, which every tar reads. */
export function packTar(entries: readonly TarEntry[], modifiedMs: number): Buffer {
  const parts: Uint8Array[] = [];
  const add = (path: string, bytes: Uint8Array, type: string): void => {
    parts.push(header(path, bytes.length, type, modifiedMs), bytes, new Uint8Array(rest(bytes.length)));
  };
  for (const { path, bytes } of entries) {
    if (split(path) === undefined) add('extended', Buffer.from(record('path', path)), 'x');
    add(split(path) === undefined ? Buffer.from(path).subarray(-NAME).toString('latin1') : path, bytes, '0');
  }
  return Buffer.concat([...parts, new Uint8Array(2 * BLOCK)]);
}

const rest = (length: number): number => (BLOCK - (length % BLOCK)) % BLOCK;

/** Splits a path into prefix and name at a slash; undefined when it does not fit. */
function split(path: string): readonly [prefix: string, name: string] | undefined {
  if (Buffer.byteLength(path) !== path.length) return undefined;
  if (path.length <= NAME) return ['', path];
  const at = path.indexOf('/', path.length - NAME - 1);
  return at < 0 || at > PREFIX ? undefined : [path.slice(0, at), path.slice(at + 1)];
}

/** A record of an extended header: its own length in decimal, a space, `key=value` and a newline. */
function record(key: string, value: string): string {
  const text = ` ${key}=${value}\n`;
  const bytes = Buffer.byteLength(text);
  let length = bytes + String(bytes).length;
  length = bytes + String(length).length;
  return `${length}${text}`;
}

function header(path: string, size: number, type: string, modifiedMs: number): Buffer {
  const [prefix, name] = split(path) ?? ['', path.slice(0, NAME)];
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number): void => {
    block.write(
      `${Math.floor(value)
        .toString(8)
        .padStart(length - 1, '0')}\0`,
      at,
      'latin1',
    );
  };
  block.write(name, 0, 'latin1');
  octal(0o644, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(modifiedMs / 1_000, 136, 12);
  block.fill(' ', 148, 156);
  block.write(type, 156, 'latin1');
  block.write('ustar\x0000', 257, 'latin1');
  block.write(prefix, 345, 'latin1');
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  return block;
}
