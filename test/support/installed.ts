import { execFileSync } from 'node:child_process';

/** Whether a program can be started. `words`: what it takes instead of `--version`. */
export function isInstalled(program: string, ...words: readonly string[]): boolean {
  try {
    execFileSync(program, words.length === 0 ? ['--version'] : words, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
