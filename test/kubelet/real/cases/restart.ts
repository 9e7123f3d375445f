import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Case } from '../support/any-kubelet.ts';
import {
  amounts,
  checkpoint,
  four,
  healthy,
  inOrder,
  listed,
  one,
  onNodes,
  outcome,
  pod,
  readsCheckpoint,
  started,
  TOY,
} from '../support/stage.ts';

export const RESTART: readonly Case[] = [
  {
    name: 'writes what a container was given into the checkpoint, for init containers too, and keeps what has ended until it writes again',
    observe: async (stage) => {
      const vendor = await started(stage, four, { allocate: () => ({ envs: { A: 'b' } }) });
      await stage.until('it is written', () => readsCheckpoint(stage.kubelet));
      const before = checkpoint(stage.kubelet);
      await stage.kubelet.admit(pod('p', { name: 'prepare', kind: 'init', wants: { [TOY]: 4 } }, { name: 'main', wants: { [TOY]: 4 } }));
      const during = checkpoint(stage.kubelet);
      await stage.kubelet.remove(pod('p'));
      await listed(stage.kubelet);
      const stale = JSON.stringify(checkpoint(stage.kubelet)) === JSON.stringify(during);
      vendor.tell(healthy(true, true, true, false));
      await stage.until('it is told', async () => (await amounts(stage.kubelet)) === '4/3');
      await stage.until('it is written', () => JSON.stringify(checkpoint(stage.kubelet)) !== JSON.stringify(during));
      return { before, during, stale, after: checkpoint(stage.kubelet) };
    },
    expected: {
      before: { entries: null, registered: { [TOY]: 'abcd' } },
      during: {
        entries: ['main', 'prepare'].map((ContainerName) => ({
          PodUID: 'uid-p',
          ContainerName,
          ResourceName: TOY,
          DeviceIDs: { '-1': 'abcd' },
          AllocResp: 'CgYKAUESAWI=',
        })),
        registered: { [TOY]: 'abcd' },
      },
      stale: true,
      after: { entries: null, registered: { [TOY]: 'abc' } },
    },
  },
  {
    name: 'keeps what is gone in the checkpoint for as long as nothing was listed or allocated',
    observe: async (stage) => {
      const { kubelet, until } = stage;
      const vendor = await started(stage, four, { prefer: inOrder });
      await kubelet.admit(one('ended', 1));
      await kubelet.admit(one('removed', 1));
      await kubelet.finish(one('ended', 1));
      await kubelet.remove(one('removed', 1));
      vendor.tell(healthy(true, true, true, false));
      await until('it is written', () => kubelet.checkpointText().includes('"d"') === false);
      const before = checkpoint(kubelet) as { entries: readonly { PodUID: string }[] };
      await kubelet.admit(one('next', 1));
      const after = checkpoint(kubelet) as typeof before;
      const pods = ({ entries }: typeof before): string[] => entries.map(({ PodUID }) => PodUID);
      return { before: pods(before), after: pods(after) };
    },
    expected: { before: ['uid-ended', 'uid-removed'], after: ['uid-next'] },
  },
  {
    name: 'comes back from a restart with its allocations, without capacity until the plugin is back, and with no pods until they are delivered',
    observe: async (stage) => {
      const vendor = await started(stage, onNodes);
      await stage.kubelet.admit(one('p', 4));
      const before = await listed(stage.kubelet);
      await stage.kubelet.end();
      const left = [stage.kubelet.podResourcesSocket, join(stage.kubelet.pluginDirectory, 'kubelet.sock')].map(existsSync);
      await stage.kubelet.start({ podsAfterMs: Number.POSITIVE_INFINITY });
      const early = await listed(stage.kubelet);
      const cleared = existsSync(vendor.socket);
      const capacity = await amounts(stage.kubelet);
      await stage.kubelet.deliver();
      const late = outcome(await stage.kubelet.admit(one('q', 1)));
      return { left, early, cleared, capacity, same: (await listed(stage.kubelet)).join() === before.join(), late };
    },
    expected: {
      left: [true, true],
      early: [],
      cleared: false,
      capacity: '0/0',
      same: true,
      late: `UnexpectedAdmissionError: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ${TOY}, which is unexpected`,
    },
  },
  {
    name: 'admits pods again when they are delivered, and refuses those whose containers do not run while their plugin is away',
    observe: async (stage) => {
      await started(stage, four);
      const wants = { [TOY]: 1 };
      for (const name of ['running', 'down']) await stage.kubelet.admit(one(name, 1));
      await stage.kubelet.admit(pod('prepared', { name: 'prepare', kind: 'init', wants }, { name: 'main', wants }));
      await stage.kubelet.admit(pod('plain', { name: 'main' }));
      for (const name of ['down', 'plain']) await stage.kubelet.takeDown(pod(name));
      await stage.kubelet.end();
      await stage.kubelet.start({ podsAfterMs: Number.POSITIVE_INFINITY });
      const refused = await stage.kubelet.deliver();
      return { refused, list: (await listed(stage.kubelet)).map((line) => line.replace(/ .@$/, ' …')) };
    },
    // An init container that has done its work does not run either.
    expected: {
      refused: ['down', 'prepared'].map((name) => ({
        pod: `ml/${name}`,
        reason: 'UnexpectedAdmissionError',
        message: `Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ${TOY}, which is unexpected`,
      })),
      list: ['plain/main', 'running/main', 'running/main …'],
    },
  },
  {
    name: 'keeps the devices of pods whose containers do not run once their plugin is back, unless one of them is sick',
    policy: 'single-numa-node',
    scope: 'pod',
    observe: async (stage) => {
      await started(stage, onNodes, { prefer: inOrder });
      for (const name of ['p', 'q']) {
        await stage.kubelet.admit(one(name, 2));
        await stage.kubelet.takeDown(one(name, 2));
      }
      await stage.kubelet.end();
      await stage.kubelet.start({ podsAfterMs: Number.POSITIVE_INFINITY });
      const sick = onNodes.map((device) => ({ ...device, healthy: device.id !== 'c' }));
      const vendor = await started(stage, sick, { prefer: inOrder, socket: 'again.sock' });
      const refused = await stage.kubelet.deliver();
      return { refused, list: await listed(stage.kubelet), asked: vendor.asked };
    },
    expected: {
      refused: [
        {
          pod: 'ml/q',
          reason: 'UnexpectedAdmissionError',
          message: `Allocate failed due to previously allocated devices are no longer healthy; cannot allocate unhealthy devices ${TOY}, which is unexpected`,
        },
      ],
      list: ['p/main', 'p/main a@0', 'p/main b@0'],
      asked: [],
    },
  },
];
