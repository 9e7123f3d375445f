import type { Case } from '../support/any-kubelet.ts';
import { amounts, checkpoint, four, inOrder, listed, one, outcome, started, TOY } from '../support/stage.ts';

/** How long the kubelet waits for a plugin to come back, and a second. */
const GRACE_MS = 5 * 60_000 + 1_000;

export const PLUGIN_GONE: readonly Case[] = [
  {
    name: 'keeps the devices of a plugin that went away as capacity, and its pods their devices',
    observe: async (stage) => {
      const vendor = await started(stage, four);
      await stage.kubelet.admit(one('p', 4));
      vendor.close();
      await stage.until('it is noticed', async () => (await amounts(stage.kubelet)) === '4/0');
      return {
        list: await listed(stage.kubelet),
        late: outcome(await stage.kubelet.admit(one('q', 1))),
        allocatable: await stage.kubelet.allocatable(TOY),
      };
    },
    expected: {
      list: ['p/main', 'p/main a@', 'p/main b@', 'p/main c@', 'p/main d@'],
      late: `UnexpectedAdmissionError: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ${TOY}, which is unexpected`,
      allocatable: [],
    },
  },
  {
    name: 'forgets a resource whose plugin was away for five minutes: capacity, checkpoint, starts; and knows it again with the plugin',
    observe: async (stage) => {
      const { kubelet, until } = stage;
      const vendor = await started(stage, four, { prefer: inOrder });
      await kubelet.admit(one('p', 2));
      vendor.close();
      await until('it is noticed', async () => (await amounts(kubelet)) === '4/0');
      await kubelet.age(TOY, GRACE_MS);
      const told = await kubelet.capacity();
      const after = {
        again: await kubelet.capacity(),
        checkpoint: checkpoint(kubelet),
        list: await listed(kubelet),
        status: await kubelet.status(one('p', 2)),
        start: (await kubelet.startAgain(one('p', 2), 'main')).error,
        late: outcome(await kubelet.admit(one('q', 1))),
      };
      await started(stage, four);
      return { told, ...after, back: (await kubelet.startAgain(one('p', 2), 'main')).error };
    },
    expected: {
      told: { capacity: {}, allocatable: {}, gone: [TOY] },
      again: { capacity: {}, allocatable: {}, gone: [] },
      checkpoint: {
        entries: [{ PodUID: 'uid-p', ContainerName: 'main', ResourceName: TOY, DeviceIDs: { '-1': 'ab' }, AllocResp: '' }],
        registered: {},
      },
      list: ['p/main', 'p/main a@', 'p/main b@'],
      status: { main: { [TOY]: { a: 'Healthy', b: 'Healthy' } } },
      start: `endpoint not found in cache for a registered resource: ${TOY}`,
      late: `UnexpectedAdmissionError: Allocate failed due to cannot allocate unregistered device ${TOY}, which is unexpected`,
      back: undefined,
    },
  },
  {
    name: 'admits pods without devices once a resource is forgotten and no pod holds any of it',
    observe: async (stage) => {
      const { kubelet, until } = stage;
      const vendor = await started(stage, four);
      vendor.close();
      await until('it is noticed', async () => (await amounts(kubelet)) === '4/0');
      await kubelet.age(TOY, GRACE_MS);
      await kubelet.capacity();
      return outcome(await kubelet.admit(one('p', 2)));
    },
    expected: { main: '' },
  },
];
