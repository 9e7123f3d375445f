import { describe, expect, it } from 'vitest';
import type { PodResourcesPoller } from '../../src/kubelet/poller.ts';
import type { TestKubeletSettings } from '../support/kubelet/kubelet.ts';
import { ManualClock } from './support/manual-clock.ts';
import { makeNode } from './support/node.ts';

const stock = (...ids: readonly string[]) => ({ devices: ids.map((id) => ({ resource: 'vendor.com/gpu', id })), cpus: [], memory: [] });

/** A kubelet with two devices that has been asked once. */
async function askedNode(settings: Omit<TestKubeletSettings, 'directory'> = {}) {
  const { kubelet, poller: makePoller } = makeNode(settings);
  await kubelet.start();
  kubelet.setStock(stock('a', 'b'));
  const clock = new ManualClock();
  const poller = makePoller({ clock });
  await poller.refresh();
  return { kubelet, clock, poller };
}

const idsOf = (poller: PodResourcesPoller): readonly string[] | undefined => poller.current().allocatable?.devices[0]?.deviceIds;

describe('what the kubelet can hand out', () => {
  it('is asked for with each refresh, and dated by the question', async () => {
    const { kubelet, clock, poller } = await askedNode();
    expect(idsOf(poller)).toEqual(['a', 'b']);
    kubelet.setStock(stock('a'));
    clock.advance(10_000);
    await poller.refresh();
    expect(idsOf(poller)).toEqual(['a']);
    expect(poller.current().allocatableAskedMs).toBe(clock.monotonic());
  });

  it('stands while the rate limit is in the way of asking, and is told anew when that is over', async () => {
    const kubeletClock = new ManualClock();
    const { kubelet, clock, poller } = await askedNode({ rate: { perSecond: 1, burst: 3 }, clock: kubeletClock });
    const firstMs = clock.monotonic();
    kubelet.setStock(stock('a'));
    clock.advance(10_000);
    await poller.refresh();
    expect(poller.current().problem).toBeUndefined();
    expect(idsOf(poller)).toEqual(['a', 'b']);
    expect(poller.current().allocatableAskedMs).toBe(firstMs);
    kubeletClock.advance(3_000);
    await poller.refresh();
    expect(idsOf(poller)).toEqual(['a']);
  });
});
