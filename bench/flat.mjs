// 100,000 refreshes and 200,000 more, back to back, the traffic counters moving meanwhile: heap, RSS and descriptors on the way have to stay where
// they are. Memory is bounded as in the image. RSS is told as it is, and once more, with the heap of the main thread, after a full
// collection of that. So little is left over that a thread's old space takes some 100,000 refreshes to fill up to its next collection:
// only what comes after that shows whether it goes on growing.
import { parseArgs } from 'node:util';
import { startCore } from './parts/core.mjs';
import { openDescriptors, report, rssMiB } from './parts/measure.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';

const { values } = parseArgs({ options: { refreshes: { type: 'string', default: '300000' } } });
const STEPS = [1_000, 10_000, 30_000, 100_000, 200_000, 300_000].filter((count) => count <= Number(values.refreshes));
const CHUNK = 500;
const MIB = 2 ** 20;

const node = await makeNode({ infiniband: 8 });
const kubelet = await makeKubelet(
  node.root,
  60,
  Array.from({ length: 8 }, (_, n) => `mlx5_${n}`),
);
const core = await startCore({ roots: node.roots, socket: kubelet.podResourcesSocket, families: ['infiniband'] }, ['--expose-gc']);
const rows = [];
let done = 0;
try {
  for (const step of STEPS) {
    let cpuUs = 0;
    let highest = 0;
    for (; done < step; done += CHUNK) {
      node.advance();
      cpuUs = (await core.ask('refresh', { count: CHUNK })).cpuUs;
      highest = Math.max(highest, rssMiB(core.pid));
    }
    const now = rssMiB(core.pid);
    const { rss, heapUsed } = await core.ask('memory');
    rows.push({
      refreshes: done,
      'RSS MiB': now.toFixed(1),
      'highest since the last MiB': highest.toFixed(1),
      'after collection MiB': (rss / MIB).toFixed(1),
      'heap MiB': (heapUsed / MIB).toFixed(1),
      descriptors: openDescriptors(core.pid),
      'µs CPU per refresh (hot, nothing moves)': cpuUs.toFixed(0),
    });
  }
  const first = rows[0];
  const last = rows.at(-1);
  const growth = {
    'heap MiB': (last['heap MiB'] - first['heap MiB']).toFixed(1),
    'RSS MiB': (last['RSS MiB'] - first['RSS MiB']).toFixed(1),
  };
  report('flat', rows, { growth });
} finally {
  await core.stop();
  await kubelet.close();
  node.remove();
}
