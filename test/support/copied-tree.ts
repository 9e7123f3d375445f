import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A clone of this repository that also has, as a commit, what is not committed yet. */
export function copyOfThisTree(target: string): void {
  const git = (cwd: string, ...words: string[]): string[] =>
    execFileSync('git', words, { cwd, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'pipe'] })
      .split('\n')
      .filter(Boolean);
  git('.', 'clone', '--quiet', '.', target);
  for (const file of git('.', 'ls-files', '--cached', '--others', '--exclude-standard')) {
    if (!existsSync(file)) rmSync(join(target, file), { force: true });
    else {
      mkdirSync(dirname(join(target, file)), { recursive: true });
      cpSync(file, join(target, file), { verbatimSymlinks: true });
    }
  }
  git(target, 'add', '--all');
  git(
    target,
    '-c',
    'user.name=test',
    '-c',
    'user.email=test@localhost',
    'commit',
    '--quiet',
    '--allow-empty',
    '--message',
    'As it is here',
  );
}
