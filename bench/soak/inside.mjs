// Loaded into the agent's process before the agent. It answers questions about the memory of the process on the channel to its parent,
// so that the agent itself needs no code for them. Node loads it into each thread of the agent too, where it tells the heap of the thread.
import { getHeapStatistics, queryObjects, setFlagsFromString, writeHeapSnapshot } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const Timeout = setTimeout(() => {}, 0).constructor;

/** How long to wait for the threads. A thread that reads answers when the read has ended. */
const PATIENCE_MS = 3_000;

const threads = new BroadcastChannel('soak');

/** Bytes in use, only after a collection; and bytes that the heap has of the system, in use or not. */
function ownHeap(isCollected) {
  if (isCollected) {
    collect();
    // A finalizer that the first collection starts can free what only the second one finds.
    collect();
  }
  const { used_heap_size: used, total_physical_size: taken } = getHeapStatistics();
  return { used: isCollected ? used : undefined, taken };
}

/** Number of answers to the first question. Later questions wait for no more. */
let expected = Number.POSITIVE_INFINITY;

async function heapsOfThreads(isCollected) {
  const heaps = [];
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, PATIENCE_MS);
    threads.onmessage = ({ data }) => {
      heaps.push(data.heap);
      if (heaps.length < expected) return;
      clearTimeout(timer);
      resolve();
    };
    threads.postMessage({ isCollected });
  });
  if (expected === Number.POSITIVE_INFINITY) expected = heaps.length;
  return heaps;
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

const answers = {
  /** Number of sockets, servers and the like that keep the event loop alive. */
  handles: () => process.getActiveResourcesInfo().length,
  async memory({ isCollected }) {
    const own = ownHeap(isCollected);
    const { external } = process.memoryUsage();
    const others = await heapsOfThreads(isCollected);
    const taken = sum([own, ...others].map((heap) => heap.taken));
    if (!isCollected) return { taken, external, threads: others.length };
    // Most timers of the agent do not keep the event loop alive, so only the heap tells how many there are.
    const timers = queryObjects(Timeout, { format: 'count' });
    return { used: own.used, usedByThreads: sum(others.map((heap) => heap.used)), threads: others.length, timers };
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
    if (data.heap === undefined) threads.postMessage({ heap: ownHeap(data.isCollected) });
  };
}
// Setting the listener keeps the thread alive, so this comes last.
threads.unref();
