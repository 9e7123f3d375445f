import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { AnyKubelet } from './support/any-kubelet.ts';
import type { Given, StartSettings } from './support/exchanged.ts';
import { describeReal, RealKubelet } from './support/real-kubelet.ts';
import { pod, TOY } from './support/stage.ts';
import { type VendorDevice, VendorPlugin } from './support/vendor-plugin.ts';
import { closeAfterEach, closing } from './support/watched-node.ts';
import { WholeSimulation } from './support/whole-simulation.ts';

closeAfterEach();

const WAIT = { interval: 10 };
const DEVICES: readonly VendorDevice[] = [{ id: 'ä' }, { id: 'b', nodes: [0] }, { id: 'c', nodes: [1, 0] }, { id: 'd', nodes: [] }];
const OTHER = 'example.com/other';
const PODS = [
  pod('p', { name: 'prepare', kind: 'init', wants: { [TOY]: 1 } }, { name: 'main', wants: { [TOY]: 3, [OTHER]: 1 } }),
  pod('q', { name: 'main', wants: { [TOY]: 1 } }),
];
const ANSWER = { envs: { A: 'b' }, mounts: [{ containerPath: '/c', hostPath: '/h', readOnly: true }], cdiDevices: [{ name: 'x/y=z' }] };

const fileOf = ({ pluginDirectory }: AnyKubelet): string => join(pluginDirectory, 'kubelet_internal_checkpoint');

const UNDELIVERED: StartSettings = { podsAfterMs: Number.POSITIVE_INFINITY };

/** Two resources, of which each kubelet hears; the plugins count what they are asked to allocate. */
async function plugged(kubelet: AnyKubelet): Promise<VendorPlugin[]> {
  const allocate = (): object => ANSWER;
  const plugins = [
    new VendorPlugin(kubelet.pluginDirectory, { resource: TOY, devices: DEVICES, allocate }),
    new VendorPlugin(kubelet.pluginDirectory, { resource: OTHER, devices: [{ id: 'x' }], allocate: () => ({}) }),
  ];
  for (const plugin of plugins) await closing(plugin).start();
  await expect.poll(async () => Object.values((await kubelet.capacity()).allocatable).sort(), WAIT).toEqual([1, 4]);
  return plugins;
}

/** Devices by pod, container and resource. */
async function admitted(kubelet: AnyKubelet): Promise<Record<string, Record<string, Given['devices']>>> {
  const all: Record<string, Record<string, Given['devices']>> = {};
  for (const each of PODS) {
    const { given = {} } = await kubelet.admit(each);
    all[each.name] = Object.fromEntries(Object.entries(given).map(([name, { devices }]) => [name, devices]));
  }
  return all;
}

/** What one kubelet leaves behind, and what another one of an empty directory makes of it. */
async function handedOver(from: AnyKubelet, to: AnyKubelet, change: (text: string) => string, start: StartSettings = UNDELIVERED) {
  closing(from);
  closing(to);
  await from.start();
  await plugged(from);
  const written = await admitted(from);
  await from.end();
  mkdirSync(to.pluginDirectory, { recursive: true });
  writeFileSync(fileOf(to), change(readFileSync(fileOf(from), 'utf8')));
  await to.start(start);
  const known = (await to.capacity()).capacity;
  const plugins = await plugged(to);
  const read = await admitted(to);
  const asked = plugins.flatMap((plugin) => plugin.asked).filter(({ method }) => method === 'allocate');
  return { known, written, read, asked: asked.length };
}

const KINDS = { real: () => new RealKubelet(), simulated: () => new WholeSimulation() } as const;
type Kind = keyof typeof KINDS;

const checks = (from: Kind, to: Kind) => (): void => {
  it('is taken over: resources are known without devices, and containers have theirs without a question to the plugin', async () => {
    const { known, written, read, asked } = await handedOver(KINDS[from](), KINDS[to](), (text) => text);
    expect(known).toEqual({ [TOY]: 0, [OTHER]: 0 });
    expect(read).toEqual(written);
    expect(asked).toBe(0);
  });

  it('loses at the next admission what is not of the pods that were delivered', async () => {
    const { read, written, asked } = await handedOver(KINDS[from](), KINDS[to](), (text) => text, { podsAfterMs: 0 });
    expect(read).toEqual(written);
    expect(asked, 'the second pod was not known when the first was admitted').toBe(1);
  });

  it('is passed over when its checksum is not that of what is in it', async () => {
    const { known, asked } = await handedOver(KINDS[from](), KINDS[to](), (text) => text.replaceAll('uid-q', 'uid-r'));
    expect(known).toEqual({});
    expect(asked).toBe(4);
  });
};

describe("a checkpoint of the simulated kubelet's, read by itself", checks('simulated', 'simulated'));
describeReal("a checkpoint of the simulated kubelet's, read by the kubelet's own code", checks('simulated', 'real'));
describeReal("a checkpoint of the kubelet's own code, read by the simulated kubelet", checks('real', 'simulated'));
