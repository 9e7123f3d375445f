// Waits for the end of a run of tests, which closes the pipe even when it was killed. Then it kills each process that has the mark of the run in its
// environment: what a test started and did not end.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const [mark] = process.argv.slice(2);

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

process.stdin.resume();
process.stdin.once('close', async () => {
  // A process that is starting another is seen in the next look.
  for (let look = 0; look < 20; look += 1) {
    const found = marked();
    if (found.length === 0) break;
    found.forEach(kill);
    await sleep(100);
  }
  process.exit();
});
