// Loaded into the agent with `--import`: how long its main thread runs without a turn of its event loop. Answers each message with what it
// saw since the one before. Wall time is what a client waits; CPU of the thread is what the agent itself takes, on a busy machine too.
import { readFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const EVERY_MS = 2;

if (isMainThread && process.send !== undefined) {
  /** CPU of the main thread, milliseconds. */
  const cpu = () => Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[0]) / 1e6;
  let [wall, took] = [[], []];
  let [atMs, atCpu] = [performance.now(), cpu()];
  const turn = () => {
    const [nowMs, nowCpu] = [performance.now(), cpu()];
    wall.push(nowMs - atMs - EVERY_MS);
    took.push(nowCpu - atCpu);
    [atMs, atCpu] = [nowMs, nowCpu];
    setTimeout(turn, EVERY_MS).unref();
  };
  turn();
  process.on('message', () => {
    process.send({ wall, took });
    [wall, took] = [[], []];
  });
  // Only the agent keeps the process.
  process.channel.unref();
}
