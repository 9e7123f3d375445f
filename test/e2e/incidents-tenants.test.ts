import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TenantIncident } from '../../src/incidents/by-device.ts';
import type { IncidentRecord } from '../../src/incidents/record.ts';
import { millis } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import { SimulatedNode } from '../../src/sim/node.ts';
import { simulationOptions } from '../../src/sim/options.ts';
import { run } from '../cli/command-line.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { PROGRAM } from '../support/program.ts';
import { type ServedAgent, serve } from '../support/serve.ts';
import { until } from '../support/until.ts';

const GPU = 'GPU-5e1f0000-0000-4000-8000-000000000002';
const FPGA = '0010:21:00.0';

let node: SimulatedNode;
let agent: ServedAgent;
let flags: string[];
let webFile: string;
const state = (): string => `--state.file=${node.root}/state/health.json`;

/** `alice` and `bob` are bound as the test says, `admin` to nothing. Each has its own name as password. */
function writeWebFile(namespaces: string): void {
  const users = ['admin', 'alice', 'bob'].map((name) => `  ${name}: ${hashSync(name, 4)}`);
  writeFileSync(webFile, `${['basic_auth_users:', ...users, `basic_auth_namespaces: ${namespaces}`].join('\n')}\n`);
}
const get = (path: string, user: string): Promise<Response> =>
  fetch(agent.url + path, { headers: { authorization: `Basic ${Buffer.from(`${user}:${user}`).toString('base64')}` } });
const list = async <T extends object = TenantIncident>(user: string, query = ''): Promise<readonly T[]> =>
  ((await (await get(`/api/incidents${query}`, user)).json()) as { incidents: readonly T[] }).incidents;
const start = async (): Promise<void> => {
  agent = await serve(flags);
  await until(async () => (await get('/-/ready', 'admin')).status === 200, 'the agent is ready');
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
  webFile = join(node.root, 'web.yml');
  writeWebFile('{alice: [training], bob: [genomics]}');
  flags = [...node.flags(), '--refresh.interval=500ms', `--path.kmsg=${node.root}/kernel.log`, `--web.config.file=${webFile}`];
  await start();
  const held = /^container_device_allocation\{.*(?:GPU|0010)/gm;
  await until(async () => ((await (await get('/metrics', 'admin')).text()).match(held) ?? []).length > 1, 'both families are held');
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
    const all = await list('admin');
    return ['nvidia/', 'fpga/'].every((family) => all.some(({ device }) => device.startsWith(family)));
  };
  await until(both, 'each family has an incident');
});
afterAll(async () => {
  await agent?.stop('SIGKILL');
  await node?.stop();
});

describe('tenants of a simulated node', () => {
  it('each read the incidents of their own pods, and nothing of the other', async () => {
    for (const [user, own, family, others] of [
      ['alice', 'training', 'nvidia/', /genomics|aligner|fpga/],
      ['bob', 'genomics', 'fpga/', /training|finetune|nvidia|GPU-/],
    ] as const) {
      const answer = await get('/api/incidents', user);
      expect(answer.status).toBe(200);
      const text = await answer.text();
      expect(text).not.toMatch(others);
      expect(text).not.toMatch(/tenantproc|4711|"message"|NVRM|Timeout/);
      const { incidents } = JSON.parse(text) as { incidents: readonly TenantIncident[] };
      expect(incidents.length).toBeGreaterThan(0);
      for (const one of incidents) {
        expect(one.device).toMatch(family);
        expect(one).not.toHaveProperty('id');
        expect(one.conditions).not.toEqual([]);
        expect([...new Set(one.held.map(({ namespace }) => namespace))]).toEqual([own]);
      }
    }
    for (const path of ['/metrics', '/', '/incidents', '/api/v1/devices', '/api/v1/allocations', '/api/usage'])
      expect((await get(path, 'alice')).status).toBe(403);
    for (const { id } of await list('admin')) {
      expect((await get(`/api/incidents/${id}`, 'bob')).status).toBe(403);
      expect((await get(`/api/incidents/${id}`, 'admin')).status).toBe(200);
    }
    expect((await get('/api/incidents?namespace=training', 'bob')).status).toBe(403);
  });

  it('get each the own part of an incident that hit both, also after a restart', async () => {
    const [gpu] = (await list('admin')).filter(({ device }) => device.startsWith('nvidia/'));
    const id = gpu?.id as string;
    expect(await agent.stop()).toBe(0);
    const file = join(node.root, 'state/incidents', `${id}.json`);
    const { record } = JSON.parse(readFileSync(file, 'utf8')) as { record: IncidentRecord };
    const [holder] = record.holders;
    const shared = { ...record, id: `${id}-s`, holders: [...record.holders, { ...holder, namespace: 'genomics', pod: 'beside-0' }] };
    const head = { format: 'device-agent-incident', version: 1, summary: { ...gpu, id: shared.id } };
    writeFileSync(
      join(node.root, 'state/incidents', `${id}-s.json`),
      `${JSON.stringify(head).slice(0, -1)},\n"record":${JSON.stringify(shared)}}\n`,
    );
    await start();
    const ofBoth = async (user: string): Promise<readonly string[]> =>
      (await list(user)).filter(({ device }) => device.startsWith('nvidia/')).flatMap(({ holders }) => holders);
    expect(await ofBoth('bob')).toEqual([`genomics/beside-0/${holder?.container}`]);
    expect((await ofBoth('alice')).every((name) => name.startsWith('training/'))).toBe(true);
    expect((await list('admin', '?namespace=genomics')).map((one) => one.id)).toContain(`${id}-s`);
  });

  it('get others as soon as the file binds them to others', async () => {
    writeWebFile('{alice: [genomics], bob: [nowhere]}');
    await expect.poll(async () => (await list('bob')).length, { interval: 500 }).toBe(0);
    expect((await list('alice')).some(({ device }) => device.startsWith('fpga/'))).toBe(true);
    expect(JSON.stringify(await list('alice'))).not.toContain('training');
    writeWebFile('{alice: }');
    await expect.poll(() => agent.log(), { interval: 500 }).toContain('basic_auth_namespaces.alice must be a list');
    expect((await get('/metrics', 'alice')).status).toBe(403);
  });

  it('stop the start of an agent whose file binds a user that is not there', () => {
    const file = join(node.root, 'wrong.yml');
    writeFileSync(file, 'basic_auth_namespaces: {carol: [training]}\n');
    const { status, stderr } = spawnSync(
      process.execPath,
      [PROGRAM, 'serve', '--web.listen-address=127.0.0.1:0', `--web.config.file=${file}`, '--state.file='],
      { encoding: 'utf8' },
    );
    expect(status).toBe(2);
    expect(stderr).toContain('basic_auth_namespaces.carol names no user of basic_auth_users');
  });
});

describe('device-agent incidents --pod', () => {
  it('lists what hit one pod, from the agent and then from the disk, and names no other', async () => {
    const fpga = (await list('admin', '?namespace=genomics')).find(({ device }) => device.startsWith('fpga/')) as TenantIncident;
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
