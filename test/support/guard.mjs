// Waits for the end of a run of tests, which closes the pipe even when it was killed. Then it kills each process that has the mark of the run in its
// environment, what a test started and did not end, and removes the folders of the run: node guard.mjs MARK FOLDER...
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const [mark, ...folders] = process.argv.slice(2);

/** Processes with the mark. Who starts a process gives it its environment. */
function marked() {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return false;
    try {
      return readFileSync(`/proc/${name}/environ`, 'utf8').split('\0').includes(mark);
    } catch {
      return false;
    }
  });
}

function kill(pid) {
  try {
    process.kill(Number(pid), 'SIGKILL');
  } catch {
    // It ended by itself.
  }
}

/** Mount points below a folder, the deepest first. */
function mountsBelow(folder) {
  const points = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '');
  return points.filter((point) => point.startsWith(`${folder}/`)).toSorted((a, b) => b.length - a.length);
}

function remove(folder) {
  for (const point of mountsBelow(folder)) spawnSync('umount', ['-l', point]);
  // What is mounted there is of others, so it must not be removed with the folder.
  if (mountsBelow(folder).length > 0) return;
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  } catch {
    // Somebody still writes there. The next look tries again.
  }
}

process.stdin.resume();
process.stdin.once('close', async () => {
  // A process that is starting another is seen in the next look.
  for (let look = 0; look < 50; look += 1) {
    const found = marked();
    found.forEach(kill);
    if (found.length === 0) folders.forEach(remove);
    if (found.length === 0 && !folders.some((folder) => existsSync(folder))) break;
    await sleep(100);
  }
  process.exit();
});
