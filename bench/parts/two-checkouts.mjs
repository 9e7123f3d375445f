// One refresh of this checkout against one of another checkout that is built. Both see the same node and take turns.
import { loadavg } from 'node:os';
import { startCore } from './core.mjs';
import { addDriver } from './driver.mjs';
import { hasCompiler, median, rssMiB, threadMillis } from './measure.mjs';
import { makeKubelet, makeNode } from './node-tree.mjs';

const WARM_UP = 100;
const REFRESHES_PER_TURN = 5;
const PODS = 60;
const CASES = [
  { name: '8 HCAs', counts: { infiniband: 8 } },
  { name: '136 functions', counts: { infiniband: 8, 'infiniband.vf': 128 } },
  { name: '8 GPUs by NVML', counts: {}, gpus: 8 },
];

/** Rows with the medians of the other checkout and of this one, and their ratio. */
export async function compareWith(checkout, turns) {
  const rows = [];
  for (const { name, counts, gpus = 0 } of CASES) {
    if (gpus > 0 && !hasCompiler('there is no library to read from')) continue;
    const node = await makeNode(counts);
    const nvidia = gpus > 0 ? (await addDriver(node, gpus)).options : undefined;
    const functions = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const kubelet = await makeKubelet(
      node.root,
      PODS,
      Array.from({ length: Math.min(PODS, functions) }, (_, n) => `mlx5_${n}`),
    );
    const family = nvidia === undefined ? 'infiniband' : 'nvidia';
    const settings = { roots: node.roots, socket: kubelet.podResourcesSocket, families: [family], options: { nvidia } };
    const cores = [await startCore(settings, [], checkout), await startCore(settings)];
    try {
      for (const core of cores) await core.ask('refresh', { count: WARM_UP });
      const took = cores.map(() => ({ reader: [], whole: [] }));
      for (let turn = 0; turn < turns; turn += 1) {
        const sums = cores.map(() => ({ reader: 0, whole: 0 }));
        for (let left = REFRESHES_PER_TURN; left > 0; left -= 1) {
          node.advance();
          for (const at of turn % 2 === 0 ? [0, 1] : [1, 0]) {
            const { reader, whole } = await refreshMillis(cores[at]);
            sums[at].reader += reader / REFRESHES_PER_TURN;
            sums[at].whole += whole / REFRESHES_PER_TURN;
          }
        }
        for (const [at, { reader, whole }] of sums.entries()) {
          took[at].reader.push(reader);
          took[at].whole.push(whole);
        }
      }
      const pair = (of, digits) => {
        const [other, own] = [0, 1].map(of);
        return `${other.toFixed(digits)} / ${own.toFixed(digits)} = ${(own / other).toFixed(2)}`;
      };
      const row = {
        node: name,
        'reader, ms CPU, other / this': pair((at) => median(took[at].reader), 2),
        'whole agent, ms CPU': pair((at) => median(took[at].whole), 2),
        'RSS, MiB': pair((at) => rssMiB(cores[at].pid), 0),
        load: loadavg()[0].toFixed(1),
      };
      console.error(JSON.stringify(row));
      rows.push(row);
    } finally {
      await Promise.all([...cores.map((core) => core.stop()), kubelet.close()]);
      node.remove();
    }
  }
  return rows;
}

/** The thread of the family is the one that works most beside the main thread. */
async function refreshMillis({ pid, ask }) {
  const before = threadMillis(pid);
  await ask('refresh', { kubelet: false, isMeasured: false });
  const own = [...threadMillis(pid)].map(([thread, after]) => [thread, after - (before.get(thread) ?? 0)]);
  const others = own.filter(([thread]) => thread !== String(pid)).map(([, millis]) => millis);
  return { reader: Math.max(...others), whole: own.reduce((sum, [, millis]) => sum + millis, 0) };
}
