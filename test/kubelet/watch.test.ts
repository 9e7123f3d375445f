import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { watchCheckpoint } from '../../src/kubelet/claims/watch.ts';
import type { PodResourcesPoller } from '../../src/kubelet/poller.ts';
import { changes } from './support/changes.ts';
import { ManualClock } from './support/manual-clock.ts';
import { gpuPod, heldPods, holders, makeNode, temporaryDirectory } from './support/node.ts';

const holds = (poller: PodResourcesPoller, pod: string): boolean => poller.current().allocations.some((entry) => entry.pod === pod);

describe('a poller that watches', () => {
  it('sees a pod by the change of the checkpoint, with no refresh asked for', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    const { onChange, until } = changes();
    const poller = makePoller({ onChange });
    poller.watch();
    await poller.refresh();
    kubelet.admitPod(gpuPod('short', 'gpu-0'));
    await until(() => holds(poller, 'short'));
    expect(holders(poller)).toEqual(['short/main=vendor.com/gpu:gpu-0']);
  });

  it('sees the end of a pod, which changes no file, and asks nothing more by itself when no device is held', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    kubelet.admitPod(gpuPod('short', 'gpu-0'));
    const clock = new ManualClock();
    const causes: string[] = [];
    const { onChange, until } = changes();
    const poller = makePoller({
      clock,
      options: { checkpoint: '' },
      onChange: (cause) => {
        causes.push(cause);
        onChange();
      },
    });
    poller.watch();
    await poller.refresh();
    clock.advance(500);
    await until(() => causes.length === 2);
    // Holders that stay are looked at less often.
    clock.advance(60_000);
    await until(() => causes.length === 3);
    clock.advance(500);
    kubelet.removePod('ml', 'short');
    clock.advance(4_500);
    await until(() => !holds(poller, 'short'));
    expect(causes).toEqual(['request', 'look', 'look', 'look']);
    clock.advance(5_000);
    await poller.refresh();
    expect(causes).toEqual(['request', 'look', 'look', 'look', 'request']);
  });

  it('asks a few times for a burst of admissions, not once for each', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    const { onChange, until } = changes();
    const poller = makePoller({ onChange });
    poller.watch();
    for (let pod = 0; pod < 100; pod += 1) kubelet.admitPod(gpuPod(`burst-${pod}`, `gpu-${pod}`));
    await until(() => poller.current().allocations.length === 100);
    expect(kubelet.calls('v1.List')).toBeLessThan(10);
  });

  it('sees a change that happened while a question was on its way', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    const { onChange, until } = changes();
    const poller = makePoller({ onChange });
    poller.watch();
    kubelet.setFault({ kind: 'slow', delayMs: 300 });
    kubelet.admitPod(gpuPod('first', 'gpu-0'));
    await until(() => holds(poller, 'first'));
    const running = poller.refresh();
    kubelet.admitPod(gpuPod('second', 'gpu-1'));
    await running;
    const asked = kubelet.calls('v1.List');
    await until(() => kubelet.calls('v1.List') > asked);
    await until(() => holds(poller, 'second'));
  });

  it('notices by itself that the kubelet is gone, back, and listing again', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    kubelet.admitPod(gpuPod('train', 'gpu-0'));
    const { onChange, until } = changes();
    const poller = makePoller({ onChange });
    await poller.refresh();
    poller.watch();
    await kubelet.close();
    await until(() => poller.current().problem?.reason === 'socket-missing');
    await kubelet.restart({ emptyForMs: Number.POSITIVE_INFINITY });
    await until(() => poller.current().problem === undefined);
    expect(heldPods(poller)).toEqual(['train']);
    kubelet.deliverPods();
    kubelet.admitPod(gpuPod('next', 'gpu-1'));
    await until(() => holds(poller, 'next'));
    expect(heldPods(poller)).toEqual([]);
  });

  it('asks again by itself when a back-off ends', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    kubelet.setFault({ kind: 'rate-limited' });
    const { onChange, until } = changes();
    const poller = makePoller({ onChange });
    poller.watch();
    await poller.refresh();
    expect(poller.current().problem?.reason).toBe('rate-limited');
    kubelet.setFault(undefined);
    await until(() => poller.current().problem === undefined);
  });
});

describe('the watch on the checkpoint', () => {
  it('waits for a directory that is not there, and follows one that is made anew', async () => {
    const directory = join(temporaryDirectory(), 'device-plugins');
    const path = join(directory, 'kubelet_internal_checkpoint');
    const write = (text: string): void => {
      mkdirSync(directory, { recursive: true });
      writeFileSync(`${path}.tmp`, text);
      renameSync(`${path}.tmp`, path);
    };
    let seen = 0;
    const { onChange, until } = changes();
    const watch = watchCheckpoint(
      path,
      () => {
        seen += 1;
        onChange();
      },
      systemClock,
    );
    try {
      write('first');
      await until(() => seen >= 1);
      const before = seen;
      rmSync(directory, { recursive: true });
      await until(() => seen > before);
      const gone = seen;
      write('second time');
      await until(() => seen > gone);
      const again = seen;
      write('third time, in the new directory');
      await until(() => seen > again);
    } finally {
      watch.close();
    }
  });

  it('is silent about other files of the directory', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'kubelet_internal_checkpoint');
    const { onChange, until } = changes();
    const seen: string[] = [];
    let written = 'nothing';
    const watch = watchCheckpoint(
      path,
      () => {
        seen.push(written);
        onChange();
      },
      systemClock,
    );
    try {
      for (let other = 0; other < 20; other += 1) writeFileSync(join(directory, `plugin-${other}.sock`), '');
      await new Promise((resolve) => setImmediate(resolve));
      written = 'checkpoint';
      writeFileSync(path, '{}');
      await until(() => seen.length > 0);
      expect(seen[0]).toBe('checkpoint');
    } finally {
      watch.close();
    }
  });
});
