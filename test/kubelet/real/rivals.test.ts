import { expect, it } from 'vitest';
import { seriesValue, serve } from '../../support/serve.ts';
import { until } from '../../support/until.ts';
import { describeReal, RELEASE } from './support/real-kubelet.ts';
import { VendorPlugin } from './support/vendor-plugin.ts';
import { closeAfterEach, closing, podNamed, watchedNode } from './support/watched-node.ts';

closeAfterEach();

const HCA = 'example.com/hca';
const WAIT = { interval: 20 };

describeReal("another vendor's plugin of the same resource", () => {
  it.each(['direct', 'watcher'])(
    'does not keep the resource: the agent takes it back, and has it when the other ends (%s)',
    async (registration) => {
      const { kubelet, agent } = await watchedNode({
        counts: { infiniband: 2 },
        resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' } }],
        flags: [`--plugin.registration=${registration}`],
      });
      await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/2');
      const rival = closing(await new VendorPlugin(kubelet.pluginDirectory, { resource: HCA, devices: [{ id: 'theirs' }] }).start());
      await until(() => kubelet.lists.some(({ devices }) => 'theirs' in devices), 'the kubelet has the list of the other');
      await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/2');
      rival.close();
      await agent.until('all is well', (page) => seriesValue(page, 'device_agent_plugin_differing_devices', { resource: HCA }) === 0);
      await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/2');
      const given = await kubelet.run({ ...podNamed('after'), containers: [{ name: 'main', wants: { [HCA]: 2 } }] });
      expect(given.main?.devices[HCA]).toHaveLength(2);
    },
  );
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
    // Up to 1.36 its end takes the resource away.
    if (RELEASE === '1.36') await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/0');
    await expect.poll(() => kubelet.amounts(HCA), WAIT).toBe('2/2');
    const given = await kubelet.run({ ...podNamed('after'), containers: [{ name: 'main', wants: { [HCA]: 2 } }] });
    expect(given.main?.devices[HCA]).toHaveLength(2);
  });
});
