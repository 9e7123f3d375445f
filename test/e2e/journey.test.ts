import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { nodeOf, type ServedAgent, seriesValue, serve } from '../support/serve.ts';

const SERVED = 'device-agent.dev/vf';
const ADDRESS = /^[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.[0-7]$/;

interface Checkpoint {
  readonly Data: {
    readonly PodDeviceEntries: readonly {
      readonly ResourceName: string;
      readonly DeviceIDs: Readonly<Record<string, readonly string[]>>;
    }[];
    readonly RegisteredDevices: Readonly<Record<string, readonly string[]>>;
  };
}

let demo: ServedAgent | undefined;
afterEach(async () => {
  await demo?.stop('SIGTERM');
});

describe('the built program on a node of files, with a kubelet', () => {
  it('offers devices through the plugin, shows which pod holds them on both pages and the API, and takes everything along', async () => {
    demo = await serve(['--sim.devices=all=0,infiniband=2,infiniband.vf=4', '--sim.pods=12', '--sim.pod-change=2s'], 'demo');
    const named = (name: string): Readonly<Record<string, string>> => ({ resource: SERVED, ...(name === '' ? {} : { result: name }) });
    const heldIn = (page: string): readonly string[] =>
      page.split('\n').filter((line) => line.startsWith('container_device_allocation{') && line.includes(SERVED));
    const page = await demo.until(
      'pods came and went, and one is there',
      (text) => (seriesValue(text, 'device_agent_plugin_allocations_total', named('ok')) ?? 0) > 2 && heldIn(text).length > 0,
    );
    expect(seriesValue(page, 'device_agent_plugin_registered', named(''))).toBe(1);
    expect(seriesValue(page, 'device_agent_plugin_devices', { resource: SERVED, state: 'healthy' })).toBe(4);
    expect(
      seriesValue(page, 'device_agent_plugin_call_duration_seconds_count', { resource: SERVED, method: 'GetPreferredAllocation' }),
    ).toBeGreaterThan(0);
    expect(seriesValue(page, 'device_agent_kubelet_allocatable_devices', named(''))).toBe(4);
    for (const line of heldIn(page)) expect(/device_id="([^"]*)"/.exec(line)?.[1]).toMatch(ADDRESS);

    const root = nodeOf(demo);
    const path = join(root, 'kubelet/device-plugins/kubelet_internal_checkpoint');
    const checkpoint = () => (JSON.parse(readFileSync(path, 'utf8')) as Checkpoint).Data;
    expect(checkpoint().RegisteredDevices[SERVED]).toHaveLength(4);
    const held = () =>
      checkpoint()
        .PodDeviceEntries.filter(({ ResourceName }) => ResourceName === SERVED)
        .flatMap(({ DeviceIDs }) => Object.values(DeviceIDs).flat());
    await expect.poll(held, { message: 'which pod holds which function' }).toContainEqual(expect.stringMatching(ADDRESS));

    const device = /device="([^"]*)"/.exec(heldIn(page)[0] ?? '')?.[1] ?? 'none';
    expect(await (await fetch(demo.url)).text(), 'the page').toContain(device);
    const { devices } = (await (await fetch(`${demo.url}/api/v1/devices`)).json()) as { devices: { id: string }[] };
    expect(devices.map(({ id }) => id)).toContain(device);

    expect(existsSync(root)).toBe(true);
    expect(await demo.stop()).toBe(0);
    expect(existsSync(root)).toBe(false);
  });
});
