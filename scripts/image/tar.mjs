// A tar archive of a directory that depends on nothing but names, contents and which files can be run: the same tree gives the
// same bytes on each machine. Files belong to root and were changed at the beginning of 1970.
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

const BLOCK = 512;
const TYPES = { file: '0', link: '2', folder: '5' };

/** Folders that everyone may write to, as /tmp. */
const SHARED_FOLDERS = new Set(['tmp']);

export function tarOf(directory) {
  const blocks = [];
  for (const path of pathsBelow(directory)) {
    const full = join(directory, path);
    const status = lstatSync(full);
    if (status.isSymbolicLink()) blocks.push(header(path, 'link', 0o777, 0, readlinkSync(full)));
    else if (status.isDirectory()) blocks.push(header(`${path}/`, 'folder', SHARED_FOLDERS.has(path) ? 0o1777 : 0o755, 0));
    else {
      const content = readFileSync(full);
      blocks.push(header(path, 'file', (status.mode & 0o100) === 0 ? 0o644 : 0o755, content.length), content, padding(content.length));
    }
  }
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

/** A folder comes before what is in it. */
function pathsBelow(directory) {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort();
}

function header(path, type, mode, size, target = '') {
  const block = Buffer.alloc(BLOCK);
  const [prefix, name] = split(path);
  const put = (text, at) => block.write(text, at);
  const octal = (number, digits) => `${number.toString(8).padStart(digits, '0')}\0`;
  if (Buffer.byteLength(target) > 100) throw new Error(`the target of ${path} is too long for a tar archive: ${target}`);
  put(name, 0);
  put(octal(mode, 7), 100);
  put(octal(0, 7), 108);
  put(octal(0, 7), 116);
  put(octal(size, 11), 124);
  put(octal(0, 11), 136);
  put(' '.repeat(8), 148);
  put(TYPES[type], 156);
  put(target, 157);
  put('ustar\x0000', 257);
  put('root', 265);
  put('root', 297);
  put(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** A name of 100 bytes, and 155 for the folders before it. */
function split(path) {
  if (Buffer.byteLength(path) <= 100) return ['', path];
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (name !== '' && Buffer.byteLength(name) <= 100 && Buffer.byteLength(prefix) <= 155) return [prefix, name];
  }
  throw new Error(`the name is too long for a tar archive: ${path}`);
}

const padding = (size) => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
