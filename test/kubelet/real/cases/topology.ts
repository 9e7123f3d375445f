import type { Case } from '../support/any-kubelet.ts';
import { amounts, four, inOrder, listed, one, onNodes, outcome, pod, started, TOY } from '../support/stage.ts';

export const TOPOLOGY: readonly Case[] = [
  {
    name: 'chooses the lower of two nodes that would do',
    policy: 'single-numa-node',
    observe: async (stage) => {
      const devices = [...four, { id: 'e' }, { id: 'f' }].map(({ id }, at) => ({ id, nodes: [at < 4 ? 0 : 1] }));
      await started(stage, devices, {
        prefer: (available: readonly string[], _: unknown, size: number) => [...available].sort().slice(0, size),
      });
      return outcome(await stage.kubelet.admit(one('p', 2)));
    },
    expected: { main: 'ab' },
  },
  {
    name: 'refuses what no single node has',
    policy: 'single-numa-node',
    observe: async (stage) => {
      await started(stage, onNodes);
      return outcome(await stage.kubelet.admit(one('p', 3)));
    },
    expected: 'TopologyAffinityError: Resources cannot be allocated with Topology locality',
  },
  {
    name: 'refuses more than there is for the topology, before it counts',
    policy: 'single-numa-node',
    observe: async (stage) => {
      await started(stage, onNodes);
      return outcome(await stage.kubelet.admit(one('p', 5)));
    },
    expected: 'TopologyAffinityError: Resources cannot be allocated with Topology locality',
  },
  {
    name: 'refuses two nodes where one would have done, under the restricted policy, and allows them where none would',
    policy: 'restricted',
    observe: async (stage) => {
      await started(stage, onNodes);
      const whole = outcome(await stage.kubelet.admit(one('p', 3)));
      await stage.kubelet.remove(one('p', 3));
      await stage.kubelet.admit(pod('x', { name: 'main', wants: { [TOY]: 1 } }));
      await stage.kubelet.admit(pod('y', { name: 'main', wants: { [TOY]: 2 } }));
      return {
        whole: Object.values(whole as object).map((ids: string) => ids.length),
        torn: outcome(await stage.kubelet.admit(one('z', 2))),
      };
    },
    expected: { whole: [3], torn: 'TopologyAffinityError: Resources cannot be allocated with Topology locality' },
  },
  {
    name: 'goes on without alignment under the best-effort policy',
    policy: 'best-effort',
    observe: async (stage) => {
      await started(stage, onNodes);
      const given = outcome(await stage.kubelet.admit(one('p', 3))) as Record<string, string>;
      return given.main?.length;
    },
    expected: 3,
  },
  {
    name: 'puts the devices of two resources on one node',
    policy: 'single-numa-node',
    observe: async (stage) => {
      await started(stage, onNodes);
      const other = 'example.com/other';
      await stage.plugin({ resource: other, devices: [{ id: 'x', nodes: [1] }] }).start();
      await stage.until('both are known', async () => (await amounts(stage.kubelet, other)) === '1/1');
      return outcome(await stage.kubelet.admit(pod('p', { name: 'main', wants: { [TOY]: 2, [other]: 1 } })));
    },
    expected: { main: 'cd' },
  },
  {
    name: 'does not mind a topology policy where devices have no topology',
    policy: 'single-numa-node',
    observe: async (stage) => {
      await started(stage, four);
      return outcome(await stage.kubelet.admit(one('p', 4)));
    },
    expected: { main: 'abcd' },
  },
  {
    name: 'puts all containers of a pod on one node where the scope is the pod',
    policy: 'single-numa-node',
    scope: 'pod',
    observe: async (stage) => {
      await started(stage, onNodes, { prefer: inOrder });
      const first = outcome(await stage.kubelet.admit(one('first', 1)));
      const both = await stage.kubelet.admit(pod('p', { name: 'x', wants: { [TOY]: 1 } }, { name: 'y', wants: { [TOY]: 1 } }));
      return { first, both: outcome(both) };
    },
    expected: { first: { main: 'a' }, both: { x: 'c', y: 'd' } },
  },
  {
    name: 'refuses a pod whose containers would each fit on a node and together fit on none, where the scope is the pod',
    policy: 'single-numa-node',
    scope: 'pod',
    observe: async (stage) => {
      await started(stage, onNodes);
      const refused = await stage.kubelet.admit(pod('p', { name: 'x', wants: { [TOY]: 2 } }, { name: 'y', wants: { [TOY]: 1 } }));
      return { refused: outcome(refused), list: await listed(stage.kubelet) };
    },
    expected: { refused: 'TopologyAffinityError: Resources cannot be allocated with Topology locality', list: [] },
  },
  {
    name: 'counts only what an init container needs beyond the others, where the scope is the pod',
    policy: 'single-numa-node',
    scope: 'pod',
    observe: async (stage) => {
      await started(stage, onNodes);
      const wants = (count: number) => ({ wants: { [TOY]: count } });
      const fits = pod('fits', { name: 'prepare', kind: 'init', ...wants(2) }, { name: 'main', ...wants(2) });
      const given = outcome(await stage.kubelet.admit(fits));
      await stage.kubelet.remove(fits);
      const sidecar = { name: 'side', kind: 'sidecar' as const, ...wants(1) };
      const tooMany = pod('many', sidecar, { name: 'prepare', kind: 'init', ...wants(2) }, { name: 'main', ...wants(1) });
      return { given, tooMany: outcome(await stage.kubelet.admit(tooMany)) };
    },
    expected: {
      given: { prepare: 'ab', main: 'ab' },
      tooMany: 'TopologyAffinityError: Resources cannot be allocated with Topology locality',
    },
  },
  {
    name: 'passes over nodes that the machine does not have',
    policy: 'restricted',
    observe: async (stage) => {
      const devices = [
        { id: 'a', nodes: [0] },
        { id: 'b', nodes: [7] },
      ];
      await started(stage, devices);
      return { both: outcome(await stage.kubelet.admit(one('both', 2))), one: outcome(await stage.kubelet.admit(one('one', 1))) };
    },
    expected: { both: 'TopologyAffinityError: Resources cannot be allocated with Topology locality', one: { main: 'a' } },
  },
];
