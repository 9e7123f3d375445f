// Project: programs. Histories in number.
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { millis } from '../../src/model/duration.ts';
import type { TestKubelet } from '../support/kubelet/kubelet.ts';
import { gpuPod, makeNode } from './support/node.ts';

const descriptors = (): number => readdirSync('/proc/self/fd').length;
const handles = (): number => process.getActiveResourcesInfo().length;

interface Round {
  readonly name: string;
  readonly times: number;
  run(kubelet: TestKubelet, refresh: () => Promise<void>): Promise<void>;
}

const rounds: readonly Round[] = [
  {
    name: 'restarts of the kubelet, each with a refresh while it is down and one after',
    times: 200,
    async run(kubelet, refresh) {
      await kubelet.stop();
      await refresh();
      await kubelet.start();
      await refresh();
    },
  },
  {
    name: 'answers that break off',
    times: 100,
    async run(kubelet, refresh) {
      await kubelet.impersonate('half-answer');
      await refresh();
      await refresh();
    },
  },
  {
    name: 'greetings of garbage',
    times: 100,
    async run(kubelet, refresh) {
      await kubelet.impersonate('garbage');
      await refresh();
      await refresh();
    },
  },
  {
    name: 'deadlines passed by a kubelet that never answers',
    times: 15,
    async run(kubelet, refresh) {
      kubelet.setFault({ kind: 'hang' });
      await refresh();
      kubelet.setFault(undefined);
    },
  },
];

describe('no descriptor and no handle is left', () => {
  it.each(rounds)('after $times $name', async ({ times, run }) => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    kubelet.admitPod(gpuPod('train', 'gpu-0'));
    const poller = makePoller({ options: { timeout: millis(200) } });
    poller.watch();
    await poller.refresh();
    await run(kubelet, () => poller.refresh());
    await kubelet.start();
    await poller.refresh();
    const before = { descriptors: descriptors(), handles: handles() };
    for (let round = 0; round < times; round += 1) await run(kubelet, () => poller.refresh());
    await kubelet.start();
    await poller.refresh();
    // What was closed is gone some turns of the event loop later; what leaks stays however long one waits.
    await expect.poll(descriptors).toBeLessThanOrEqual(before.descriptors);
    await expect.poll(handles).toBeLessThanOrEqual(before.handles);
  });

  it('after 15 deadlines passed by a listener that accepts and stays silent, while it is still there', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.impersonate('silence');
    const poller = makePoller({ options: { timeout: millis(200) } });
    await poller.refresh();
    const before = descriptors();
    for (let round = 0; round < 15; round += 1) await poller.refresh();
    await expect.poll(descriptors).toBeLessThanOrEqual(before);
  });

  it('after closing, whatever was going on', async () => {
    const before = { descriptors: descriptors(), handles: handles() };
    for (let round = 0; round < 20; round += 1) {
      const { kubelet, poller: makePoller } = makeNode();
      await kubelet.start();
      const poller = makePoller();
      poller.watch();
      await poller.refresh();
      if (round % 2 === 0) kubelet.setFault({ kind: 'hang' });
      else await kubelet.impersonate('silence');
      const run = poller.refresh();
      if (round % 4 < 2) await new Promise((resolve) => setImmediate(resolve));
      poller.close();
      await run;
      await kubelet.close();
    }
    // What was closed is gone some turns of the event loop later; what leaks stays however long one waits.
    await expect.poll(descriptors).toBeLessThanOrEqual(before.descriptors);
    await expect.poll(handles).toBeLessThanOrEqual(before.handles);
  });
});
