import type { Case } from '../support/any-kubelet.ts';
import { amounts, checkpoint, four, gotten, inOrder, listed, listedByOldest, one, started, TOY } from '../support/stage.ts';

export const POD_RESOURCES: readonly Case[] = [
  {
    name: 'tells devices with no, one, two and empty topology apart',
    observe: async (stage) => {
      const devices = [{ id: 'a' }, { id: 'b', nodes: [0] }, { id: 'c', nodes: [0, 1] }, { id: 'd', nodes: [] }];
      await started(stage, devices);
      await stage.kubelet.admit(one('p', 4));
      return {
        list: await listed(stage.kubelet),
        allocatable: await stage.kubelet.allocatable(TOY),
        checkpoint: checkpoint(stage.kubelet),
      };
    },
    expected: {
      list: ['p/main', 'p/main a@', 'p/main b@0', 'p/main c@0', 'p/main c@1', 'p/main d@'],
      allocatable: ['a', 'b', 'c'],
      checkpoint: {
        entries: [
          { PodUID: 'uid-p', ContainerName: 'main', ResourceName: TOY, DeviceIDs: { '-1': 'ad', '0': 'bc', '1': 'c' }, AllocResp: '' },
        ],
        registered: { [TOY]: 'abcd' },
      },
    },
  },
  {
    name: 'leaves ended and refused pods out of List, and has them in that of v1alpha1 without devices',
    observe: async (stage) => {
      await started(stage, four);
      await stage.kubelet.admit(one('ended', 1));
      await stage.kubelet.admit(one('running', 1));
      await stage.kubelet.admit(one('refused', 4));
      await stage.kubelet.finish(one('ended', 1));
      return {
        v1: (await listed(stage.kubelet)).map((line) => line.replace(/ .@$/, ' …')),
        oldest: (await listedByOldest(stage.kubelet)).map((line) => line.replace(/ .$/, ' …')),
      };
    },
    expected: { v1: ['running/main', 'running/main …'], oldest: ['ended/main ', 'refused/main ', 'running/main …'] },
  },
  {
    name: 'tells the health of devices in the status of pods: as last sent, even by a plugin that is gone; healthy when it was dropped',
    observe: async (stage) => {
      const vendor = await started(stage, four);
      await stage.kubelet.admit(one('p', 4));
      vendor.tell([{ id: 'a', healthy: false }, { id: 'b' }, { id: 'c' }]);
      await stage.until('it is told', async () => (await amounts(stage.kubelet)) === '3/2');
      const told = await stage.kubelet.status(one('p', 4));
      vendor.close();
      await stage.until('it is noticed', async () => (await amounts(stage.kubelet)) === '3/0');
      return { told, gone: await stage.kubelet.status(one('p', 4)) };
    },
    expected: {
      told: { main: { [TOY]: { a: 'Unhealthy', b: 'Healthy', c: 'Healthy', d: 'Healthy' } } },
      gone: { main: { [TOY]: { a: 'Unhealthy', b: 'Healthy', c: 'Healthy', d: 'Healthy' } } },
    },
  },
  {
    name: 'gets a pod that has ended too, with its devices until a listing or an admission frees them',
    observe: async (stage) => {
      await started(stage, four, { prefer: inOrder });
      for (const name of ['p', 'q']) await stage.kubelet.admit(one(name, 1));
      await stage.kubelet.admit(one('refused', 3));
      for (const name of ['p', 'q']) await stage.kubelet.finish(one(name, 1));
      const ended = await gotten(stage.kubelet, 'p');
      await stage.kubelet.admit(one('next', 1));
      const later = await gotten(stage.kubelet, 'p');
      await stage.kubelet.remove(one('p', 1));
      return { ended, later, removed: await gotten(stage.kubelet, 'p'), refused: await gotten(stage.kubelet, 'refused') };
    },
    expected: {
      ended: 'main a',
      later: 'main ',
      removed: '2 UNKNOWN: pod p in namespace ml not found',
      refused: 'main ',
    },
  },
];
