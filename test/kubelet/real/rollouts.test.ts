import { expect, it } from 'vitest';
import { seriesValue } from '../../support/serve.ts';
import { describeReal, RELEASE, RealKubelet } from './support/real-kubelet.ts';
import { HCA, type Look, type OfferingKubelet, Rollouts, toldLooks } from './support/rollouts.ts';
import { closeAfterEach, closing, podNamed } from './support/watched-node.ts';

closeAfterEach();

const ROUNDS = 20;

/**
 * With two plugins of one resource the kubelet's process rarely ends by itself, of both releases. It is then started again, as the supervisor of
 * a node does.
 */
function offering(kubelet: RealKubelet): OfferingKubelet & { readonly ends: number } {
  let ends = 0;
  let starting: Promise<void> | undefined;
  const otherwise = async <T>(question: () => Promise<T>, answer: () => Promise<T>): Promise<T> => {
    try {
      return await question();
    } catch (error) {
      if (kubelet.isRunning && starting === undefined) throw error;
      starting ??= kubelet.start().finally(() => {
        ends += 1;
        starting = undefined;
      });
      await starting;
      return answer();
    }
  };
  const offered = async (resource: string): Promise<readonly string[]> =>
    otherwise(
      async () => kubelet.allocatable(resource),
      () => offered(resource),
    );
  return {
    get ends() {
      return ends;
    },
    pluginDirectory: kubelet.pluginDirectory,
    flags: () => kubelet.flags(),
    offered,
    run: (name, count) =>
      otherwise<readonly string[] | string>(
        async () => {
          const { refused, given } = await kubelet.admit({ ...podNamed(name), containers: [{ name: 'main', wants: { [HCA]: count } }] });
          return refused === undefined ? [...(given?.main?.devices[HCA] ?? [])].sort() : `${refused.reason}: ${refused.message}`;
        },
        async () => 'the kubelet ended',
      ),
    // What was asked of a kubelet that ended may have been done.
    remove: (name) =>
      otherwise(
        async () => kubelet.remove(podNamed(name)),
        () => kubelet.remove(podNamed(name)).catch(() => undefined),
      ),
  };
}

describeReal('agents and plugins that replace each other on one node', () => {
  it(`leave a kubelet that offers what the one that stays serves, ${ROUNDS} times`, async () => {
    const kubelet = closing(new RealKubelet());
    await kubelet.start();
    const node = offering(kubelet);
    const rollouts = closing(new Rollouts(node, 1));
    await rollouts.start();
    const looks: Look[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const look = await rollouts.round();
      expect(look, `look ${round}`).toMatchObject({ pod: look.expected });
      looks.push(look);
    }
    process.stderr.write(`${RELEASE}: ${toldLooks(looks)}, ${node.ends} ends of the kubelet by itself\n`);
    await expect.poll(async () => seriesValue(await rollouts.page(), 'device_agent_plugin_differing_devices', { resource: HCA })).toBe(0);
  });
});
