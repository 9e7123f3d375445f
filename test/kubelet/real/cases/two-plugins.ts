import type { Case, Stage } from '../support/any-kubelet.ts';
import { amounts, failure, four, one, onNodes, started, TOY } from '../support/stage.ts';
import type { VendorPlugin } from '../support/vendor-plugin.ts';

/** Admits one pod after the other until one of them asks the plugin. */
async function isAsked({ kubelet, until }: Stage, plugin: VendorPlugin): Promise<void> {
  let pods = 0;
  await until('a pod asks the plugin that is left', async () => {
    pods += 1;
    const pod = one(`p${pods}`, 1);
    await kubelet.admit(pod);
    await kubelet.remove(pod);
    return plugin.asked.some(({ method }) => method === 'allocate');
  });
}

/** Two plugins of one resource, with a socket each. */
export const TWO_PLUGINS: readonly Case[] = [
  {
    name: 'loses the newer of two plugins of one resource when the older ends',
    observe: async (stage) => {
      const older = await started(stage, four);
      const newer = stage.plugin({ resource: TOY, devices: onNodes, socket: 'newer.sock' });
      await newer.start();
      await stage.until('both are followed', () => newer.watchers === 1);
      older.close();
      await stage.until('it is noticed', async () => (await amounts(stage.kubelet)) === '4/0');
      await stage.until('the newer was cut off', () => newer.watchers === 0);
      return amounts(stage.kubelet);
    },
    expected: '4/0',
    only: '1.36',
  },
  {
    name: 'keeps both plugins of one resource, and offers the list that either sent last, also when its sender has ended',
    async observe(stage) {
      const { kubelet, until } = stage;
      const older = await started(stage, four);
      const newer = await stage.plugin({ resource: TOY, devices: [{ id: 'x' }], socket: 'newer.sock' }).start();
      await until('the newer is known', async () => (await amounts(kubelet)) === '1/1');
      older.tell(four.slice(0, 3));
      await until('the older has told', async () => (await amounts(kubelet)) === '3/3');
      newer.tell([{ id: 'x' }, { id: 'a', healthy: false }]);
      await until('the newer has told', async () => (await amounts(kubelet)) === '2/1');
      newer.close();
      await isAsked(stage, older);
      const left = { amounts: await amounts(kubelet), allocatable: await kubelet.allocatable(TOY), watchers: older.watchers };
      older.tell(four);
      await until('the list is replaced', async () => (await amounts(kubelet)) === '4/4');
      older.close();
      await until('the last one is gone', async () => (await amounts(kubelet)) === '4/0');
      return left;
    },
    expected: { amounts: '2/1', allocatable: ['x'], watchers: 1 },
    only: '1.37',
  },
  {
    name: 'refuses a socket that is connected, and does not see its end any more',
    async observe(stage) {
      const { kubelet } = stage;
      const plugin = await started(stage, four);
      const again = (await failure(plugin.register())).replace(plugin.socket, '<socket>');
      plugin.close();
      // The end of a plugin of another resource, which is seen, comes later.
      const other = await stage.plugin({ resource: 'example.com/other', devices: four }).start();
      await stage.until('the other is known', async () => (await amounts(kubelet, 'example.com/other')) === '4/4');
      other.close();
      await stage.until('the end of the other is seen', async () => (await amounts(kubelet, 'example.com/other')) === '4/0');
      const left = await amounts(kubelet);
      const next = stage.plugin({ resource: TOY, devices: four });
      await next.serve();
      const refused = (await failure(next.register())).replace(next.socket, '<socket>');
      return { again, left, refused };
    },
    expected: {
      again: 'device plugin already connected: <socket>',
      left: '4/4',
      refused: 'device plugin already connected: <socket>',
    },
    only: '1.37',
  },
];
