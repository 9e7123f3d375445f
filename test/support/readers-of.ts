import { readdirSync, readFileSync } from 'node:fs';

/** The processes that an agent started and that read hardware for it. */
export function readersOf(pid: number): readonly number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
  );
  return children.filter((child) => commandOf(child).includes('/reader.js')).map(Number);
}

/** Empty when the process has ended. */
function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
