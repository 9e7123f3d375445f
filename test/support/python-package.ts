import { type ExecFileSyncOptions, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from './cache.ts';
import { isInstalled } from './installed.ts';
import { DEADLINE_MS } from './until.ts';

/** A folder with the unpacked files of a package, or why it cannot be had here. */
export type Unpacked =
  | { readonly folder: string; readonly missing?: undefined }
  | { readonly folder?: undefined; readonly missing: string };

const quiet: ExecFileSyncOptions = { stdio: ['ignore', 'pipe', 'pipe'], timeout: DEADLINE_MS };

/**
 * Downloads one version of a Python package, without what it depends on, once in this checkout, and unpacks it. The configuration of pip
 * decides from where. Nothing of the package is run. `words`: further ones for pip, for a package of another Python.
 */
export function pythonPackage(name: string, version: string, words: readonly string[] = []): Unpacked {
  const folder = join(cacheFolder(), `python-${name}-${version}`);
  if (existsSync(folder)) return { folder };
  if (!isInstalled('python3')) return { missing: 'python3 is not installed' };
  const made = mkdtempSync(join(cacheFolder(), 'pip-'));
  const [downloads, files] = [join(made, 'downloads'), join(made, 'files')];
  try {
    const pip = ['-m', 'pip', 'download', '--no-deps', '--only-binary=:all:', '--retries=0', '--timeout=15'];
    execFileSync('python3', [...pip, '--disable-pip-version-check', '-q', ...words, '-d', downloads, `${name}==${version}`], quiet);
    mkdirSync(files);
    execFileSync('python3', ['-m', 'zipfile', '-e', join(downloads, readdirSync(downloads)[0] ?? ''), files], quiet);
    // Another test may have unpacked the same files meanwhile.
    if (!existsSync(folder)) renameSync(files, folder);
    return { folder };
  } catch {
    return existsSync(folder) ? { folder } : { missing: `pip cannot download ${name} ${version} here` };
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}
