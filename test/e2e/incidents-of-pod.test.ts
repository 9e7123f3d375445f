import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NamespaceIncident } from '../../src/incidents/by-device.ts';
import { millis } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import { SimulatedNode } from '../../src/sim/node.ts';
import { simulationOptions } from '../../src/sim/options.ts';
import { run } from '../cli/command-line.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { type ServedAgent, serve } from '../support/serve.ts';
import { until } from '../support/until.ts';

const GPU = 'GPU-5e1f0000-0000-4000-8000-000000000002';
const FPGA = '0010:21:00.0';

let node: SimulatedNode;
let agent: ServedAgent;
let flags: string[];
const state = (): string => `--state.file=${node.root}/state/health.json`;

const get = (path: string): Promise<Response> => fetch(agent.url + path);
const list = async (query = ''): Promise<readonly NamespaceIncident[]> =>
  ((await (await get(`/api/incidents${query}`)).json()) as { incidents: readonly NamespaceIncident[] }).incidents;
const start = async (): Promise<void> => {
  agent = await serve(flags);
  await until(async () => (await get('/-/ready')).status === 200, 'the agent is ready');
};

beforeAll(async () => {
  const size = {
    ...defaultValues(simulationOptions),
    devices: ['all=0', 'nvidia=3', 'fpga=1'],
    pods: 8,
    'pod-change': millis(0),
    story: 'off',
  };
  node = new SimulatedNode(simulatedFamilies, size, new ManualClock());
  await node.start();
  writeFileSync(join(node.root, 'kernel.log'), '');
  flags = [...node.flags(), '--refresh.interval=500ms', `--path.kmsg=${node.root}/kernel.log`];
  await start();
  const held = /^container_device_allocation\{.*(?:GPU|0010)/gm;
  await until(async () => ((await (await get('/metrics')).text()).match(held) ?? []).length > 1, 'both families are held');
  for (const [fault, device] of [
    ['ecc', GPU],
    ['nonfatal-error', FPGA],
  ] as const)
    node.begin(fault, device);
  let line = 0;
  const both = async (): Promise<boolean> => {
    line += 1;
    const text = `NVRM: Xid (PCI:0008:02:00): 119, pid=4711, name=tenantproc, Timeout after 6s`;
    appendFileSync(join(node.root, 'kernel.log'), `4,${line},${line}000000,-;${text}\n`);
    const all = await list();
    return ['nvidia/', 'fpga/'].every((family) => all.some(({ device }) => device.startsWith(family)));
  };
  await until(both, 'each family has an incident');
});
afterAll(async () => {
  await agent?.stop('SIGKILL');
  await node?.stop();
});

describe('device-agent incidents --pod', () => {
  it('lists what hit one pod, from the agent and then from the disk, and names no other', async () => {
    const fpga = (await list('?namespace=genomics')).find(({ device }) => device.startsWith('fpga/')) as NamespaceIncident;
    const [{ pod = '' } = {}] = fpga.held;
    const json = await run(['incidents', '--pod', `genomics/${pod}`, '-o', 'json', state()]);
    expect(JSON.parse(json.stdout)).toEqual({ incidents: [fpga], faults: [] });
    const table = await run(['incidents', '--pod', `genomics/${pod}`, state()]);
    expect(table.stdout).toMatch(/^ID +TIME +DEVICE +CHANGE +CONDITIONS +REMEDIES +HELD BY\n/);
    expect(table.stdout).toMatch(new RegExp(`${FPGA} .*NonfatalError.*kernel since 2`));
    expect(table.stdout).not.toMatch(/training|nvidia/);
    expect((await run(['incidents', '--pod', 'genomics/none', state()])).stdout).toBe('No recorded incident hit the pod genomics/none.\n');
    const whole = await run(['incidents', state()]);
    expect(whole.stdout).toMatch(/training[\s\S]*genomics|genomics[\s\S]*training/);

    expect(await agent.stop()).toBe(0);
    const stopped = ['--web.listen-address=127.0.0.1:1', state()];
    expect((await run(['incidents', '--pod', `genomics/${pod}`, ...stopped])).stdout).toBe(table.stdout);
    expect(JSON.parse((await run(['incidents', '--pod', `genomics/${pod}`, '-o', 'json', ...stopped])).stdout)).toEqual({
      incidents: [fpga],
      faults: [],
    });
  });

  it('refuses what is no pod, and an id beside it', async () => {
    for (const pod of ['x', 'a/b/c', '/b', 'a/', 'A/b', 'a/../b', 'a?x/b'])
      expect(await run(['incidents', '--pod', pod, '--state.file='])).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('flag --pod:'),
      });
    const both = await run(['incidents', 'some-id', '--pod', 'a/b', '--state.file=']);
    expect(both).toMatchObject({ status: 2, stderr: expect.stringContaining('leave out the id or --pod') });
  });
});
