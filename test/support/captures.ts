import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { unless } from './skipped.ts';

/** Files of real machines, beside the checkout. They are no part of the project, so tests of them are skipped without the folder. */
export const CAPTURES = resolve('../shared/captures');
export const areThere = existsSync(CAPTURES);
/** End of the name of a test that needs them. */
export const skipped = unless(areThere, `${CAPTURES} is not there`);

/** Makes a copied tree writable, and makes its links again: a capture has a link as a file with the target as text. */
export function restoreLinks(root: string): void {
  execFileSync('chmod', ['-R', 'u+w', root]);
  restore(root);
}

function restore(directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) restore(path);
    else if (entry.isFile() && lstatSync(path).size < 200) {
      const text = readFileSync(path, 'utf8');
      if (!/^(?:\.\.\/)+\S+$/.test(text)) continue;
      rmSync(path);
      symlinkSync(text, path);
    }
  }
}

/** Unpacks an archive of a whole machine: `sys` and `proc` below the root. */
export function unpackMachine(archive: string, root: string): void {
  execFileSync('tar', ['-xjf', join(CAPTURES, 'hwloc', `${archive}.tar.bz2`), '-C', root, '--strip-components=1']);
  execFileSync('chmod', ['-R', 'u+w', root]);
}
