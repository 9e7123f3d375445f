import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const GUARD = join(import.meta.dirname, 'guard.mjs');
/** A name is short, because the path of a socket below it has 107 bytes at most. */
const FOLDER = /^t-(([\da-z]+)\.\w+)$/;

/** Names a process for as long as the machine is up: ids are used again, with another start. Undefined when it has ended. */
function markOf(pid: number): string | undefined {
  try {
    const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(/ \((?:.*)\) /s);
    return `${pid.toString(36)}.${Number(fields.split(' ')[19]).toString(36)}`;
  } catch {
    return undefined;
  }
}

/** Folders of runs whose process has ended, and that nothing could remove when it was killed. */
function leftIn(base: string): string[] {
  return readdirSync(base).filter((name) => {
    const [, mark, pid = ''] = FOLDER.exec(name) ?? [];
    return mark !== undefined && markOf(Number.parseInt(pid, 36)) !== mark;
  });
}

function made(folder: string): string {
  mkdirSync(folder);
  // Tests start programs as other users, too.
  chmodSync(folder, 0o1777);
  return folder;
}

/**
 * Makes this process the owner of all that its tests leave: each temporary file is below one folder, each process has one mark. A guard kills and removes both
 * when this process has ended in any way.
 */
export function ownRun(): void {
  if (process.env.TEST_RUN !== undefined) return;
  const mark = markOf(process.pid) ?? '';
  const bases = [tmpdir(), '/dev/shm'].filter((base) => existsSync(base));
  const left = bases.flatMap((base) => leftIn(base).map((name) => join(base, name)));
  const folders = bases.map((base) => made(join(base, `t-${mark}`)));
  process.env.TEST_RUN = mark;
  process.env.TMPDIR = folders[0];
  process.env.TEST_MEMORY = folders.at(-1);
  const words = [GUARD, `TEST_RUN=${mark}`, ...folders, ...left];
  const guard = spawn(process.execPath, words, { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  guard.unref();
  // The pipe stays open until this process ends, and does not keep it.
  (guard.stdin as Socket).unref();
  // So that nothing is there any more when who started the tests goes on.
  process.once('exit', () => void spawnSync(process.execPath, words, { input: '' }));
}
