import type { Case } from '../support/any-kubelet.ts';
import type { WantedContainer } from '../support/exchanged.ts';
import { four, listed, one, onNodes, outcome, pod, started, TOY } from '../support/stage.ts';

export const ADMISSION: readonly Case[] = [
  {
    name: 'admits a pod without devices where nobody has registered the resource',
    observe: async ({ kubelet }) => ({ pod: outcome(await kubelet.admit(one('p', 2))), list: await listed(kubelet) }),
    expected: { pod: { main: '' }, list: ['p/main'] },
  },
  {
    name: 'refuses what it does not have',
    observe: async (stage) => {
      await started(stage, four);
      await stage.kubelet.admit(one('p', 3));
      const refused = outcome(await stage.kubelet.admit(one('q', 2)));
      await stage.kubelet.remove(one('p', 3));
      return { refused, list: await listed(stage.kubelet), afterwards: outcome(await stage.kubelet.admit(one('r', 4))) };
    },
    expected: {
      refused: `UnexpectedAdmissionError: Allocate failed due to requested number of devices unavailable for ${TOY}. Requested: 2, Available: 1, which is unexpected`,
      list: [],
      afterwards: { main: 'abcd' },
    },
  },
  {
    name: 'refuses a pod in the words of its plugin',
    observe: async (stage) => {
      const allocate = (): never => {
        throw new Error('not on a sunday');
      };
      await started(stage, four, { allocate });
      const refused = outcome(await stage.kubelet.admit(one('p', 1)));
      return { refused, list: await listed(stage.kubelet), allocatable: await stage.kubelet.allocatable(TOY) };
    },
    expected: {
      refused: 'UnexpectedAdmissionError: Allocate failed due to rpc error: code = Unknown desc = not on a sunday, which is unexpected',
      list: [],
      allocatable: ['a', 'b', 'c', 'd'],
    },
  },
  {
    name: 'refuses a pod whose plugin gives an answer without content',
    observe: async (stage) => {
      await started(stage, four, { allocate: () => undefined });
      return String(outcome(await stage.kubelet.admit(one('p', 1)))).replace(/response .*,/, 'response …,');
    },
    expected: 'UnexpectedAdmissionError: Allocate failed due to no containers return in allocation response …, which is unexpected',
  },
  {
    name: 'follows a proposal as far as it can, and fills it up',
    observe: async (stage) => {
      const answers = [['d', 'c'], ['zz', 'b'], []];
      const vendor = await started(stage, four, { prefer: () => answers.shift() ?? [] });
      const first = outcome(await stage.kubelet.admit(one('p', 2)));
      const second = outcome(await stage.kubelet.admit(one('q', 1)));
      return { first, second, asked: vendor.asked };
    },
    expected: {
      first: { main: 'cd' },
      second: { main: 'b' },
      asked: [
        { method: 'prefer', ids: ['a', 'b', 'c', 'd'], mustInclude: [] },
        { method: 'allocate', ids: ['c', 'd'] },
        { method: 'prefer', ids: ['a', 'b'], mustInclude: [] },
        { method: 'allocate', ids: ['b'] },
      ],
    },
  },
  {
    name: 'asks for a proposal even when all are needed, where there is no topology to go by',
    observe: async (stage) => {
      const vendor = await started(stage, four, { prefer: (available: readonly string[]) => available });
      await stage.kubelet.admit(one('p', 4));
      return vendor.asked.map(({ method }) => method);
    },
    expected: ['prefer', 'allocate'],
  },
  {
    name: 'does not ask when the devices of the chosen node are as many as needed',
    policy: 'single-numa-node',
    observe: async (stage) => {
      const vendor = await started(stage, onNodes, { prefer: (available: readonly string[]) => available });
      await stage.kubelet.admit(one('p', 2));
      return vendor.asked;
    },
    expected: [{ method: 'allocate', ids: ['a', 'b'] }],
  },
  {
    name: 'refuses a pod whose plugin fails to propose',
    observe: async (stage) => {
      const prefer = (): never => {
        throw new Error('no idea');
      };
      await started(stage, four, { prefer });
      return outcome(await stage.kubelet.admit(one('p', 2)));
    },
    expected:
      'UnexpectedAdmissionError: Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown desc = no idea, which is unexpected',
  },
  {
    name: 'hands the devices of init containers on, those of sidecars not',
    observe: async (stage) => {
      const prefer = (available: readonly string[], must: readonly string[], size: number): readonly string[] =>
        [...must, ...[...available].sort().filter((id) => !must.includes(id))].slice(0, size);
      const vendor = await started(stage, four, { prefer });
      const containers: WantedContainer[] = [
        { name: 'first', kind: 'init', wants: { [TOY]: 2 } },
        { name: 'side', kind: 'sidecar', wants: { [TOY]: 1 } },
        { name: 'second', kind: 'init', wants: { [TOY]: 1 } },
        { name: 'main', wants: { [TOY]: 2 } },
      ];
      const given = outcome(await stage.kubelet.admit(pod('p', ...containers))) as Record<string, string>;
      const first = given.first ?? '';
      return {
        first,
        sideHasOneOfFirst: first.includes(given.side ?? '-'),
        secondHasTheOther: first.includes(given.second ?? '-') && given.second !== given.side,
        mainHasSecond: given.main?.includes(given.second ?? '-'),
        mainHasNotSide: given.main?.includes(given.side ?? '-') === false,
        proposals: vendor.asked
          .filter(({ method }) => method === 'prefer')
          .map(({ ids, mustInclude }) => [ids.length, mustInclude?.length]),
        list: (await listed(stage.kubelet)).map((line) => line.replace(/ .*/, ' …')),
      };
    },
    expected: {
      first: 'ab',
      sideHasOneOfFirst: true,
      secondHasTheOther: true,
      mainHasSecond: true,
      mainHasNotSide: true,
      proposals: [
        [4, 0],
        [3, 1],
      ],
      list: ['p/main', 'p/main …', 'p/main …', 'p/side', 'p/side …'],
    },
  },
  {
    name: 'checks before the start of a container, and tells why it cannot start',
    observe: async (stage) => {
      const preStart = (): never => {
        throw new Error('it is cold');
      };
      await started(stage, four, { preStart });
      const { given, refused } = await stage.kubelet.admit(one('p', 4));
      return { refused, error: given?.main?.error, list: (await listed(stage.kubelet)).length };
    },
    expected: {
      refused: undefined,
      error: 'device plugin PreStartContainer rpc failed with err: rpc error: code = Unknown desc = it is cold',
      list: 5,
    },
  },
];
