import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A shared library made of one C source, compiled once for each text of it on this machine. Copies of the file have a state of
 * their own.
 */
export function compiledLibrary(source: string): string {
  const hash = createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 16);
  const library = join(tmpdir(), `device-agent-library-${process.getuid?.() ?? 0}-${hash}.so`);
  if (!existsSync(library)) {
    const made = join(mkdtempSync(join(tmpdir(), 'device-agent-cc-')), 'library.so');
    execFileSync('cc', ['-O2', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC', '-o', made, source]);
    // Others may be making the same at this moment: whoever is last wins, with the same bytes.
    renameSync(made, library);
  }
  return library;
}
