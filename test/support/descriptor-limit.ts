import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';

/** Whether the program that changes limits of a running process is there. */
export function canLimitDescriptors(): boolean {
  try {
    return execFileSync('prlimit', ['--version']).length > 0;
  } catch {
    return false;
  }
}

/** What the program that lifts the limit again needs for itself, and more. */
const SPARE = 60;

/** Does something while this process may open only so many files more. */
export function withDescriptors<T>(more: number, run: () => T): T {
  const [, usual = '1024'] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  const highest = Math.max(...readdirSync('/proc/self/fd').map(Number));
  setLimit(String(highest + more + SPARE));
  const taken = takeAll();
  try {
    for (const fd of taken.splice(0, more)) closeSync(fd);
    return run();
  } finally {
    for (const fd of taken) closeSync(fd);
    setLimit(usual);
  }
}

function setLimit(soft: string): void {
  execFileSync('prlimit', ['--pid', String(process.pid), `--nofile=${soft}:`]);
}

function takeAll(): number[] {
  const taken: number[] = [];
  for (;;) {
    try {
      taken.push(openSync('/dev/null', 'r'));
    } catch {
      return taken;
    }
  }
}
