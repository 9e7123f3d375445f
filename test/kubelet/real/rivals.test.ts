import { expect, it } from 'vitest';
import { seriesValue, serve } from '../../support/serve.ts';
import { describeReal } from './support/real-kubelet.ts';
import { VendorPlugin } from './support/vendor-plugin.ts';
import { closeAfterEach, closing, podNamed, watchedNode } from './support/watched-node.ts';

closeAfterEach();

const HCA = 'example.com/hca';
const WAIT = { timeout: 30_000, interval: 20 };

describeReal("another vendor's plugin of the same resource", () => {
  it.each(['direct', 'watcher'])('leaves the resource in service when it ends, though the kubelet drops it (%s)', async (registration) => {
    const { kubelet } = await watchedNode({
      counts: { infiniband: 2 },
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

describeReal('two agents of one node', () => {
  it.each(['SIGTERM', 'SIGKILL'] as const)('leave the resource in service when the second ends by %s', async (signal) => {
    const { kubelet, machine } = await watchedNode({
      counts: { infiniband: 2 },
      resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' } }],
    });
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/2');
    const flags = machine.flags().filter((flag) => !flag.startsWith('--state.file'));
    const second = await serve([...flags, ...kubelet.flags(), `--config.file=${machine.root}/config.json`, '--state.file=']);
    closing({ close: () => second.child.kill('SIGKILL') });
    await second.until('it is registered', (page) => seriesValue(page, `device_agent_plugin_registered{resource="${HCA}"}`) === 1);
    await second.stop(signal);
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/0');
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/2');
    const given = await kubelet.run({ ...podNamed('after'), containers: [{ name: 'main', wants: { [HCA]: 2 } }] });
    expect(given.main?.devices[HCA]).toHaveLength(2);
  });
});
