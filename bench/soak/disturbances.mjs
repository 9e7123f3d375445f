// What happens to a node now and then. Each disturbance begins, lasts some seconds and ends completely, so that figures are read between.
import { execFileSync } from 'node:child_process';
import { rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hangCommand, hangFiles } from '../parts/hangs.mjs';
import { SERVED } from './node.mjs';

const LASTS_MS = 3_000;
const BIG_BYTES = 256 * 2 ** 20;

/** Something else stands at the place of the checkpoint. Pods pause meanwhile, because each new pod replaces the checkpoint. */
const atCheckpoint = (put) => async (node) => {
  const { checkpoint, churns } = node;
  churns.pods.isPaused = true;
  rmSync(checkpoint, { force: true });
  put(checkpoint);
  await sleep(LASTS_MS);
  rmSync(checkpoint, { force: true });
  churns.pods.isPaused = false;
};

export const DISTURBANCES = {
  async 'the kubelet restarts'({ kubelet, manager }) {
    await Promise.all([kubelet.stop(), manager.stop()]);
    await sleep(500);
    await Promise.all([kubelet.start(), manager.start()]);
  },
  'a FIFO as checkpoint': atCheckpoint((path) => execFileSync('mkfifo', [path])),
  async 'the kubelet drops the plugin'({ manager }) {
    for (const resource of Object.values(SERVED)) manager.disconnect(resource);
    await sleep(LASTS_MS);
  },
  'a big checkpoint': atCheckpoint((path) => {
    writeFileSync(path, '{');
    truncateSync(path, BIG_BYTES);
  }),
  async 'a kubelet that says nothing'({ kubelet }) {
    await kubelet.stop();
    rmSync(kubelet.podResourcesSocket, { force: true });
    const silent = createServer((socket) => socket.resume().on('error', () => {}));
    const open = new Set();
    silent.on('connection', (socket) => open.add(socket));
    silent.listen(kubelet.podResourcesSocket);
    await sleep(LASTS_MS);
    for (const socket of open) socket.destroy();
    silent.close();
    await kubelet.start();
  },
  async 'a file of a device hangs'({ root }) {
    const release = hangFiles([join(root, 'sys/class/infiniband/mlx5_0/ports/1/rate')]);
    await sleep(LASTS_MS);
    release();
  },
  'a checkpoint of garbage': atCheckpoint((path) => writeFileSync(path, '{"Data":{"PodDeviceEntries":[{'.repeat(1_000))),
  async 'nvidia-smi hangs'({ root }) {
    const release = hangCommand(join(root, 'bin/nvidia-smi'));
    await sleep(LASTS_MS);
    release();
  },
  'a link to nowhere as checkpoint': atCheckpoint((path) => symlinkSync('/nowhere', path)),
};
