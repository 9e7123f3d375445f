// What a release is made of: one commit, and the packages of its lock file.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The commit, its time in seconds, and its files. A tree that differs from its commit is refused, because nobody could make it again. */
export function readCheckout(root) {
  const git = (...words) => execFileSync('git', words, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 }).trim();
  const changed = git('status', '--porcelain');
  if (changed !== '') throw new Error(`the tree differs from its commit, so nobody could make this release again:\n${changed}`);
  return { commit: git('rev-parse', 'HEAD'), time: Number(git('log', '-1', '--format=%ct')), files: git('ls-files').split('\n') };
}

/** The entries of package-lock.json by their folder. The installed packages must be these. */
export function readLock(root) {
  const read = (path) => JSON.parse(readFileSync(join(root, path), 'utf8')).packages;
  const [lock, installed] = [read('package-lock.json'), read('node_modules/.package-lock.json')];
  const isOther = (folder, { integrity }) => integrity === undefined || lock[folder]?.integrity !== integrity;
  const other = Object.keys(installed).filter((folder) => isOther(folder, installed[folder]));
  if (other.length > 0) throw new Error(`node_modules is not what package-lock.json says, run npm ci: ${other.join(', ')}`);
  return lock;
}
