// Runs a program so that nothing of it is left: with a temporary directory and a process group of its own, which go when it has ended.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const GRACE_MS = 2_000;
const LOOK_MS = 50;
const STOPPED_BY = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Gives the exit status, or the signal that ended it, and the milliseconds that it took. Ends it after `limitMs`. A signal to this
 * process ends it too, and then this process.
 */
export async function runContained(command, args, limitMs) {
  const directory = mkdtempSync(join(tmpdir(), 'bench-'));
  const begun = performance.now();
  const child = spawn(command, args, { stdio: 'inherit', detached: true, env: { ...process.env, TMPDIR: directory } });
  const late = setTimeout(() => signalGroup(child.pid, 'SIGTERM'), limitMs);
  let stoppedBy;
  const stop = (signal) => {
    stoppedBy = signal;
    signalGroup(child.pid, signal);
  };
  for (const signal of STOPPED_BY) process.on(signal, stop);
  try {
    const [status, signal] = await once(child, 'exit');
    return { status: signal ?? status, ms: performance.now() - begun };
  } finally {
    clearTimeout(late);
    await endGroup(child.pid);
    rmSync(directory, { recursive: true, force: true });
    for (const signal of STOPPED_BY) process.off(signal, stop);
    if (stoppedBy !== undefined) process.kill(process.pid, stoppedBy);
  }
}

/** What the program started and did not end is asked to end, and is ended. */
async function endGroup(group) {
  const endMs = performance.now() + GRACE_MS;
  for (let isThere = signalGroup(group, 'SIGTERM'); isThere && performance.now() < endMs; isThere = signalGroup(group, 0)) {
    // One that stands still hears nothing.
    signalGroup(group, 'SIGCONT');
    await sleep(LOOK_MS);
  }
  signalGroup(group, 'SIGKILL');
}

/** False when nothing of the group is left. */
function signalGroup(group, signal) {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}
