import { expect, it } from 'vitest';
import { describeReal } from './support/real-kubelet.ts';
import { VendorPlugin } from './support/vendor-plugin.ts';
import { closeAfterEach, closing, podNamed, watchedNode } from './support/watched-node.ts';

closeAfterEach();

const HCA = 'example.com/hca';
const WAIT = { timeout: 30_000, interval: 20 };

describeReal("another vendor's plugin of the same resource", () => {
  it.each(['direct', 'watcher'])('leaves the resource in service when it ends, though the kubelet drops it (%s)', async (registration) => {
    const { kubelet } = await watchedNode({
      scenario: { hcas: 2 },
      resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' } }],
      flags: [`--plugin.registration=${registration}`],
    });
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/2');
    const rival = closing(await new VendorPlugin(kubelet.pluginDirectory, { resource: HCA, devices: [{ id: 'theirs' }] }).start());
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('1/1');
    rival.close();
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('1/0');
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/2');
    const given = await kubelet.run({ ...podNamed('after'), containers: [{ name: 'main', wants: { [HCA]: 2 } }] });
    expect(given.main?.devices[HCA]).toHaveLength(2);
  });
});
