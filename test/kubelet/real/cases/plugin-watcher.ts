import { renameSync } from 'node:fs';
import { join } from 'node:path';
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
  {
    name: 'tries what failed again at growing intervals',
    observe: async (stage) => {
      const wrong = stage.watched({ resource: TOY, devices: four, type: 'OtherPlugin' });
      await wrong.serve();
      await stage.until('it has asked four times', () => wrong.infoAtMs.length === 4);
      const [first, second, third] = wrong.infoAtMs.slice(1).map((atMs, before) => atMs - (wrong.infoAtMs[before] as number)) as [
        number,
        number,
        number,
      ];
      // It looks each second; the waits between are half a second, one and two.
      return { first: first > 500 && first < 1_500, second: second > 999, third: third > 1_999 };
    },
    expected: { first: true, second: true, third: true },
  },
  {
    name: 'registers a plugin again whose socket was made anew',
    observe: async (stage) => {
      const settings = { resource: TOY, devices: four };
      const before = stage.watched(settings);
      await before.serve();
      await stage.until('it is known', async () => (await amounts(stage.kubelet)) === '4/4');
      before.close();
      const after = stage.watched({ ...settings, devices: four.slice(1) });
      await after.serve();
      await stage.until('the new one is known', async () => (await amounts(stage.kubelet)) === '3/3');
      return [before.notified, after.notified];
    },
    expected: [['registered'], ['registered']],
  },
  {
    name: 'knows a socket by the name that it is given in the end',
    observe: async (stage) => {
      const plugin = stage.watched({ resource: TOY, devices: four, socket: '.made.sock' });
      await plugin.serve();
      renameSync(plugin.socket, join(stage.kubelet.registry, 'made.sock'));
      await stage.until('it was asked', () => plugin.infoAtMs.length > 0);
      return plugin.infoAtMs.length;
    },
    expected: 1,
  },
  {
    name: 'looks into folders with a dot at its start, and not when they come later',
    observe: async (stage) => {
      const early = stage.watched({ resource: TOY, devices: four }, '.early');
      await stage.kubelet.end();
      await early.serve();
      await stage.kubelet.start();
      await stage.until('it has begun to look', () => early.notified.length > 0);
      const late = stage.watched({ resource: 'example.com/late', devices: four }, '.late');
      await late.serve();
      // One more look.
      const next = stage.watched({ resource: 'example.com/next', devices: four });
      await next.serve();
      await stage.until('the next is known', () => next.notified.length > 0);
      return { early: early.notified, late: late.notified };
    },
    expected: { early: ['registered'], late: [] },
  },
  {
    name: 'does not notice that a socket was moved away',
    observe: async (stage) => {
      const plugin = stage.watched({ resource: TOY, devices: four });
      await plugin.serve();
      await stage.until('it is known', async () => (await amounts(stage.kubelet)) === '4/4');
      renameSync(plugin.socket, join(stage.kubelet.registry, '..', 'moved.sock'));
      const next = stage.watched({ resource: 'example.com/next', devices: four });
      await next.serve();
      await stage.until('the next is known', () => next.notified.length > 0);
      return amounts(stage.kubelet);
    },
    expected: '4/4',
  },
];
