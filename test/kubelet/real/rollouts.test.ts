import { expect, it } from 'vitest';
import { seriesValue } from '../../support/serve.ts';
import { describeReal, RealKubelet } from './support/real-kubelet.ts';
import { HCA, type Look, type OfferingKubelet, Rollouts, toldLooks } from './support/rollouts.ts';
import { closeAfterEach, closing, podNamed } from './support/watched-node.ts';

closeAfterEach();

const ROUNDS = 20;

function offering(kubelet: RealKubelet): OfferingKubelet {
  return {
    pluginDirectory: kubelet.pluginDirectory,
    flags: () => kubelet.flags(),
    offered: (resource) => kubelet.allocatable(resource),
    async run(name, count) {
      const { refused, given } = await kubelet.admit({ ...podNamed(name), containers: [{ name: 'main', wants: { [HCA]: count } }] });
      return refused === undefined ? [...(given?.main?.devices[HCA] ?? [])].sort() : `${refused.reason}: ${refused.message}`;
    },
    remove: (name) => kubelet.remove(podNamed(name)),
  };
}

describeReal('agents and plugins that replace each other on one node', () => {
  it(`leave a kubelet that offers what the one that stays serves, ${ROUNDS} times`, async () => {
    const kubelet = closing(new RealKubelet());
    await kubelet.start();
    const rollouts = closing(new Rollouts(offering(kubelet), 1));
    await rollouts.start();
    const looks: Look[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const look = await rollouts.round();
      expect(look, `look ${round}`).toMatchObject({ pod: look.expected });
      looks.push(look);
    }
    process.stderr.write(`${toldLooks(looks)}\n`);
    await expect.poll(async () => seriesValue(await rollouts.page(), 'device_agent_plugin_differing_devices', { resource: HCA })).toBe(0);
  }, 600_000);
});
