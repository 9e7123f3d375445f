// Loaded into the agent's process before the agent. It answers questions about the memory of the process on the channel to its parent,
// so that the agent itself needs no code for them. Node loads it into each thread of the agent too, where it tells the heap of the thread.
import { queryObjects, setFlagsFromString, writeHeapSnapshot } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

/** A finalizer of the first collection can free what only the second one finds. */
function heapAfterCollection() {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

/** How long to wait for the threads. A thread inside a call that hangs does not answer. */
const PATIENCE_MS = 500;

const threads = new BroadcastChannel('soak');

function askThreads() {
  const heaps = [];
  return new Promise((resolve) => {
    threads.onmessage = ({ data }) => heaps.push(data.heapUsed);
    threads.postMessage({ ask: 'memory' });
    setTimeout(() => resolve(heaps), PATIENCE_MS);
  });
}

const Timeout = setTimeout(() => {}, 0).constructor;

const answers = {
  /** Number of sockets, servers and the like that keep the event loop alive. */
  handles: () => process.getActiveResourcesInfo().length,
  async memory() {
    const heapUsed = heapAfterCollection();
    const { external } = process.memoryUsage();
    // Most timers of the agent do not keep the event loop alive, so only the heap tells how many there are.
    const timers = queryObjects(Timeout, { format: 'count' });
    return { heapUsed, external, timers, threadHeaps: await askThreads() };
  },
  snapshot: ({ path }) => writeHeapSnapshot(path),
};

if (isMainThread && process.send !== undefined) {
  process.on('message', async (message) => {
    const answer = answers[message.soak];
    if (answer !== undefined) process.send({ soak: message.soak, answer: await answer(message) });
  });
  process.channel.unref();
} else {
  threads.onmessage = ({ data }) => {
    if (data.ask === 'memory') threads.postMessage({ heapUsed: heapAfterCollection() });
  };
}
// Setting the listener keeps the thread alive, so this comes last.
threads.unref();
