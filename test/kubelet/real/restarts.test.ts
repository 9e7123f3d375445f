import { expect, it } from 'vitest';
import type { ServedAgent } from '../../support/serve.ts';
import { seriesValue } from '../../support/serve.ts';
import { describeReal, type RealKubelet } from './support/real-kubelet.ts';
import { closeAfterEach, closing, podNamed, seriesOf, watchedNode } from './support/watched-node.ts';

closeAfterEach();

const HCA = 'example.com/hca';
const VF = 'example.com/vf';
const SETTINGS = {
  counts: { infiniband: 2, 'infiniband.vf': 6 },
  resources: [
    { resource: HCA, select: { family: 'infiniband', kind: 'pf' } },
    { resource: VF, select: { family: 'infiniband', kind: 'vf' } },
  ],
  flags: ['--podresources.restart-grace=2s'],
};
const WAIT = { interval: 20 };
const ROUNDS = 20;

const PODS = [
  { ...podNamed('train'), containers: [{ name: 'rank', wants: { [HCA]: 1, [VF]: 2 } }] },
  {
    ...podNamed('serve'),
    containers: [
      { name: 'side', kind: 'sidecar' as const, wants: { [VF]: 1 } },
      { name: 'main', wants: { [VF]: 1 } },
    ],
  },
  { ...podNamed('plain'), containers: [{ name: 'web' }] },
];

const owners = (page: string): string[] =>
  seriesOf(page, 'container_device_allocation')
    .map(({ pod, container, device_id }) => `${pod}/${container} ${device_id}`)
    .sort();

/** Reads the page over and over; tells every state of it that was not the expected one, and whether allocations were held meanwhile. */
function watch(agent: ServedAgent, expected: readonly string[]): { end(): Promise<{ readonly wrong: string[]; readonly held: number }> } {
  let isOver = false;
  const wrong: string[] = [];
  let held = 0;
  const reading = (async () => {
    while (!isOver) {
      const page = await agent.metrics();
      const now = owners(page);
      if (now.join() !== expected.join()) wrong.push(now.join(' | '));
      held = Math.max(held, seriesValue(page, 'device_agent_podresources_held_allocations') ?? 0);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  })();
  const end = async (): Promise<{ wrong: string[]; held: number }> => {
    isOver = true;
    await reading;
    return { wrong, held };
  };
  return { end };
}

/** Of each start, the pods that were refused. */
const deliveries = ({ events }: RealKubelet): unknown[] =>
  events.filter(({ event }) => event === 'delivered').map((line) => (line as { readonly refused?: unknown }).refused);

const usable = async (kubelet: RealKubelet): Promise<string> => `${await kubelet.amounts(HCA)} ${await kubelet.amounts(VF)}`;

describeReal.each(['direct', 'watcher'])(
  "restarts of the kubelet's own device manager with its checkpoint, plugin registered %s",
  (registration) => {
    it(`survives ${ROUNDS} of them by SIGTERM and SIGKILL: registered each time, every allocation attributed throughout`, async () => {
      const { kubelet, agent } = await watchedNode({ ...SETTINGS, flags: [...SETTINGS.flags, `--plugin.registration=${registration}`] });
      await expect.poll(() => usable(kubelet), WAIT).toBe('2/2 6/6');
      for (const pod of PODS) await kubelet.run(pod);
      const expected = owners(await agent.until('all attributed', (page) => owners(page).length === 5));
      const before = (await kubelet.list()).length;
      const watching = watch(agent, expected);
      closing({ close: () => watching.end() });
      for (let round = 0; round < ROUNDS; round += 1) {
        await kubelet.end(round % 2 === 0 ? 'SIGTERM' : 'SIGKILL');
        // The static pods of a real node come after 80 ms, those of an API server after 900.
        await kubelet.start({ podsAfterMs: round % 4 < 2 ? 80 : 900 });
        if (round % 4 >= 2) expect(await kubelet.list(), 'it begins with nothing').toEqual([]);
        await expect.poll(() => usable(kubelet), WAIT).toBe('2/2 6/6');
        await expect.poll(async () => (await kubelet.list()).length, WAIT).toBe(before);
        await expect.poll(() => deliveries(kubelet).length, WAIT).toBe(round + 2);
        expect(deliveries(kubelet).at(-1), 'pods that the kubelet no longer wants').toEqual([]);
      }
      const { wrong, held } = await watching.end();
      expect(wrong).toEqual([]);
      expect(held, 'an empty list was seen, and not believed').toBe(expected.length);
      expect(agent.child.exitCode).toBeNull();

      await agent.until('nothing is held any more', (page) => seriesValue(page, 'device_agent_podresources_held_allocations') === 0);
      await kubelet.remove(podNamed('train'));
      await agent.until('gone', (page) => owners(page).length === 2);
    });

    it('forgets a pod that ended while the kubelet was away, once the grace is over', async () => {
      const { kubelet, agent } = await watchedNode({ ...SETTINGS, flags: [...SETTINGS.flags, `--plugin.registration=${registration}`] });
      await expect.poll(() => usable(kubelet), WAIT).toBe('2/2 6/6');
      for (const pod of PODS) await kubelet.run(pod);
      await agent.until('all attributed', (page) => owners(page).length === 5);
      await kubelet.end();
      await agent.until('the kubelet is away', (page) => seriesValue(page, 'device_agent_podresources_up') === 0);
      expect(owners(await agent.metrics())).toHaveLength(5);
      await kubelet.start({ podsAfterMs: Number.POSITIVE_INFINITY });
      await kubelet.remove(podNamed('train'));
      await kubelet.deliver();
      await agent.until('only the pods that are left', (page) => owners(page).length === 2);
      await expect.poll(() => usable(kubelet), WAIT).toBe('2/2 6/6');
    });
  },
);
