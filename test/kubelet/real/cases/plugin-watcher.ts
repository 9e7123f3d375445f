import type { Case } from '../support/any-kubelet.ts';
import { amounts, four, TOY } from '../support/stage.ts';

export const PLUGIN_WATCHER: readonly Case[] = [
  {
    name: 'finds plugins in its registry, below folders too and not those with a dot, and forgets them with their socket',
    observe: async (stage) => {
      const deep = stage.watched({ resource: TOY, devices: four }, 'deep/down');
      await deep.serve();
      const hidden = stage.watched({ resource: 'example.com/hidden', devices: four, socket: '.hidden.sock' });
      await hidden.serve();
      await stage.until('it is known', async () => (await amounts(stage.kubelet)) === '4/4');
      const told = deep.notified;
      deep.close();
      await stage.until('it is forgotten', async () => (await amounts(stage.kubelet)) === '4/0');
      return { told, hidden: hidden.notified };
    },
    expected: { told: ['registered'], hidden: [] },
  },
  {
    name: 'tells plugins in its registry what is wrong with them',
    observe: async (stage) => {
      const wrong = [
        stage.watched({ resource: TOY, devices: four, type: 'OtherPlugin', socket: 'type.sock' }),
        stage.watched({ resource: TOY, devices: four, version: 'v7', socket: 'version.sock' }),
        stage.watched({ resource: 'kubernetes.io/toy', devices: four, socket: 'name.sock' }),
      ];
      for (const plugin of wrong) await plugin.serve();
      await stage.until('all are told', () => wrong.every(({ notified }) => notified.length > 0));
      return wrong.map(({ notified, socket }) => notified[0]?.replace(socket, '<socket>'));
    },
    expected: [
      'RegisterPlugin error -- no handler registered for plugin type: OtherPlugin at socket <socket>',
      'RegisterPlugin error -- plugin validation failed with err: manager version, v1beta1, is not among plugin supported versions [v7]',
      'RegisterPlugin error -- plugin validation failed with err: invalid name of device plugin socket: the ResourceName "kubernetes.io/toy" is invalid',
    ],
  },
];
