import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from './cache.ts';
import { isInstalled } from './installed.ts';
import { leaveOut } from './skipped.ts';

/** Why nothing can be compiled here; undefined when it can. */
export const noCompiler = isInstalled('cc') ? undefined : 'there is no C compiler cc';

/**
 * A shared library made of one C source, compiled once for each text of it in this checkout. Copies of the file have a state of
 * their own.
 */
export const compiledLibrary = (source: string): string => compiled(source, 'library', '.so', ['-shared', '-fPIC']);

/** A program made of one C source, compiled once for each text of it in this checkout. */
export const compiledProgram = (source: string): string => compiled(source, 'program', '', []);

/** Leaves out the test that runs when there is no compiler. */
function compiled(source: string, kind: string, ending: string, flags: readonly string[]): string {
  if (noCompiler !== undefined) leaveOut(noCompiler);
  const hash = createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 16);
  const file = join(cacheFolder(), `${kind}-${hash}${ending}`);
  if (!existsSync(file)) {
    const folder = mkdtempSync(join(cacheFolder(), 'cc-'));
    const made = join(folder, kind);
    try {
      execFileSync('cc', ['-O2', '-Wall', '-Wextra', '-Werror', ...flags, '-o', made, source]);
      // Others may be making the same at this moment: whoever is last wins, with the same bytes.
      renameSync(made, file);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
  return file;
}
