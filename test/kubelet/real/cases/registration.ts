import { watch } from 'node:fs';
import { join } from 'node:path';
import type { Case } from '../support/any-kubelet.ts';
import { amounts, failure, four, healthy, one, outcome, started, TOY } from '../support/stage.ts';

export const REGISTRATION: readonly Case[] = [
  {
    name: 'registers a plugin and counts its devices',
    async observe(stage) {
      const vendor = await started(stage, healthy(true, true, false, true));
      return { amounts: await amounts(stage.kubelet), allocatable: await stage.kubelet.allocatable(TOY), watchers: vendor.watchers };
    },
    expected: { amounts: '4/3', allocatable: ['a', 'b', 'd'], watchers: 1 },
  },
  {
    name: 'refuses a version that it does not know',
    observe: async ({ plugin }) => {
      const vendor = plugin({ resource: TOY, devices: four, version: 'v1alpha9' });
      await vendor.serve();
      return failure(vendor.register());
    },
    expected: 'requested API version "v1alpha9" is not supported by kubelet. Supported version is ["v1beta1"]',
  },
  {
    name: 'refuses a name that is none',
    observe: async ({ plugin }) => {
      const said: string[] = [];
      for (const resource of ['toy', 'kubernetes.io/toy', 'requests.example.com/toy', 'example.com/-toy']) {
        const vendor = plugin({ resource, devices: four });
        await vendor.serve();
        said.push(await failure(vendor.register()));
      }
      return said;
    },
    expected: ['toy', 'kubernetes.io/toy', 'requests.example.com/toy', 'example.com/-toy'].map(
      (name) => `the ResourceName "${name}" is invalid`,
    ),
  },
  {
    name: 'gives up to dial a plugin that does not serve after ten seconds',
    observe: async ({ plugin }) => {
      const beganMs = performance.now();
      const said = await failure(plugin({ resource: TOY, devices: four }).register());
      return { said: said.replace(/: .*/, ''), seconds: Math.round((performance.now() - beganMs) / 1_000) };
    },
    expected: { said: 'failed to dial device plugin', seconds: 10 },
  },
  {
    name: 'takes an empty list for what it is',
    observe: async (stage) => {
      const vendor = await started(stage, four);
      vendor.tell([]);
      await stage.until('none is left', async () => (await amounts(stage.kubelet)) === '0/0');
      return outcome(await stage.kubelet.admit(one('p', 1)));
    },
    expected: `UnexpectedAdmissionError: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ${TOY}, which is unexpected`,
  },
  {
    name: 'makes its socket for plugins in its place, and that of PodResources under another name first',
    observe: async ({ kubelet, until }) => {
      await kubelet.end();
      const names = new Set<string | null>();
      const folders = [kubelet.pluginDirectory, join(kubelet.podResourcesSocket, '..')];
      const seen = folders.map(() => new Set<string | null>());
      const watches = folders.map((folder, at) => watch(folder, (_, name) => seen[at]?.add(name)));
      await kubelet.start();
      await until('both are seen', () => seen.every((each) => each.has('kubelet.sock')));
      for (const each of watches) each.close();
      return { names: names.size, plugins: [...(seen[0] ?? [])], others: (seen[1]?.size ?? 0) > 1 };
    },
    expected: { names: 0, plugins: ['kubelet.sock'], others: true },
  },
  {
    name: 'leaves a plugin whose list is longer than four MiB, and counts what it told before',
    observe: async (stage) => {
      const vendor = await started(stage, four);
      const name = 'x'.repeat(250);
      vendor.tell(Array.from({ length: 17_000 }, (_, at) => ({ id: `${name}${at}` })));
      await stage.until('it is left', () => vendor.watchers === 0);
      await stage.until('it is noticed', async () => (await amounts(stage.kubelet)) !== '4/4');
      return amounts(stage.kubelet);
    },
    expected: '4/0',
  },
  {
    name: 'counts an id twice that stands in a list as healthy and as not',
    observe: async (stage) => {
      const vendor = await started(stage, four);
      vendor.tell([{ id: 'a' }, { id: 'b' }, { id: 'a', healthy: false }]);
      await stage.until('it is told', async () => (await amounts(stage.kubelet)) !== '4/4');
      return {
        amounts: await amounts(stage.kubelet),
        allocatable: await stage.kubelet.allocatable(TOY),
        given: outcome(await stage.kubelet.admit(one('p', 2))),
        status: await stage.kubelet.status(one('p', 2)),
      };
    },
    expected: {
      amounts: '3/2',
      allocatable: ['a', 'b'],
      given: { main: 'ab' },
      status: { main: { [TOY]: { a: 'Unhealthy', b: 'Healthy' } } },
    },
  },
];
