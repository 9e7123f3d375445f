import { expect, it } from 'vitest';
import { seriesValue } from '../../support/serve.ts';
import { describeReal, type RealKubelet } from './support/real-kubelet.ts';
import { closeAfterEach, podNamed, type WatchedNode, watchedNode } from './support/watched-node.ts';

closeAfterEach();

const VF = 'example.com/vf';
/** Four cards of four virtual functions: cards 0 and 2 are on NUMA node 0, cards 1 and 3 on node 1. */
const COUNTS = { infiniband: 4, 'infiniband.vf': 16 };
const SELECT = { family: 'infiniband', kind: 'vf' } as const;
const WAIT = { interval: 50 };

interface Place {
  readonly card: string;
  readonly numa: number;
}

async function node(kubelet: readonly string[], preferred: 'aligned' | 'spread'): Promise<WatchedNode & { placeOf(id: string): Place }> {
  const started = await watchedNode({ counts: COUNTS, resources: [{ resource: VF, select: SELECT, preferred }], kubelet });
  await expect.poll(() => started.kubelet.amounts(VF), WAIT).toBe('16/16');
  const places = new Map((await started.devices()).map(({ id, parent = '', numaNode = -1 }) => [id, { card: parent, numa: numaNode }]));
  return { ...started, placeOf: (id) => places.get(id) as Place };
}

const distinct = (values: readonly unknown[]): number => new Set(values).size;

async function take(kubelet: RealKubelet, name: string, count: number): Promise<readonly string[]> {
  const { main } = await kubelet.run({ ...podNamed(name), containers: [{ name: 'main', wants: { [VF]: count } }] });
  return main?.devices[VF] ?? [];
}

const ALIGNED = ['-numa', '2', '-topology-policy', 'single-numa-node'];

describeReal("proposals through the kubelet's own topology manager", () => {
  it.each(['container', 'pod'])('are followed on one NUMA node: each pair is of one card (scope %s)', async (scope) => {
    const { kubelet, agent, placeOf } = await node([...ALIGNED, '-topology-scope', scope], 'aligned');
    for (let at = 0; at < 8; at += 1) {
      const places = (await take(kubelet, `p${at}`, 2)).map(placeOf);
      expect(distinct(places.map(({ numa }) => numa))).toBe(1);
      expect(distinct(places.map(({ card }) => card)), 'cards of a pair').toBe(1);
    }
    // The last pair is all that is left, so that there is nothing to choose.
    const asked = seriesValue(await agent.metrics(), 'device_agent_plugin_call_duration_seconds_count', {
      method: 'GetPreferredAllocation',
    });
    expect(asked).toBeGreaterThanOrEqual(6);
  });

  it('are followed when they ask for the opposite: each pair is of two cards', async () => {
    const { kubelet, placeOf } = await node(ALIGNED, 'spread');
    for (let at = 0; at < 8; at += 1) {
      const places = (await take(kubelet, `p${at}`, 2)).map(placeOf);
      expect(distinct(places.map(({ numa }) => numa))).toBe(1);
      expect(distinct(places.map(({ card }) => card)), 'cards of a pair').toBe(2);
    }
  });

  it('do not matter where one node has too few: the pod is refused for its topology', async () => {
    const { kubelet } = await node(ALIGNED, 'aligned');
    const wants = { [VF]: 9 };
    const { refused } = await kubelet.admit({ ...podNamed('wide'), containers: [{ name: 'main', wants }] });
    expect(refused?.reason).toBe('TopologyAffinityError');
    expect(await take(kubelet, 'narrow', 8)).toHaveLength(8);
  });

  it('span nodes where the policy allows it, filling up whole cards', async () => {
    const { kubelet, placeOf } = await node(['-numa', '2', '-topology-policy', 'best-effort'], 'aligned');
    const places = (await take(kubelet, 'wide', 12)).map(placeOf);
    expect(distinct(places.map(({ card }) => card))).toBe(3);
  });

  it('keep what an init container has, and add the nearest to it', async () => {
    const { kubelet, placeOf } = await node(ALIGNED, 'aligned');
    const containers = [
      { name: 'prepare', kind: 'init' as const, wants: { [VF]: 1 } },
      { name: 'main', wants: { [VF]: 3 } },
    ];
    const { prepare, main } = await kubelet.run({ ...podNamed('train'), containers });
    const [kept] = prepare?.devices[VF] ?? [];
    expect(main?.devices[VF]).toContain(kept);
    expect(distinct((main?.devices[VF] ?? []).map((id) => placeOf(id).card)), 'cards of the three').toBe(1);
  });
});
