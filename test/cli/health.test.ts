import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { CheckResult } from '../../src/cli/doctor/check.ts';
import { shortened } from '../../src/model/one-line.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { TreeWriter } from '../../src/sim/tree-writer.ts';
import { snapshot, state, TAKEN_AT_MS } from '../metrics/sample.ts';
import { start } from '../server/start.ts';
import { hardwareOf } from '../support/hardware.ts';
import { removeAsKernel } from '../support/kernel-files.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { device, familyState, podResources } from '../support/snapshots.ts';
import { type Ran, run } from './command-line.ts';

let root: string;
let writer: TreeWriter;
let files: readonly string[];
let agent: ServedAgent | undefined;
let stranger: Server | undefined;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-health-'));
  for (const folder of ['sys', 'proc', 'dev']) mkdirSync(join(root, folder));
  writer = new TreeWriter(root);
  const hardware = hardwareOf(infiniband, { infiniband: 3 });
  files = Object.keys(hardware.files);
  writer.apply(hardware);
  configure({ for: '0s' });
});
afterEach(async () => {
  await agent?.stop('SIGTERM');
  agent = undefined;
  stranger?.close();
  stranger = undefined;
  rmSync(root, { recursive: true, force: true });
});

/** How long a port has to be down before that counts, and up before it is withdrawn. */
function configure(portDown: { readonly for: string; readonly recovery?: string }): void {
  writeFileSync(join(root, 'config.yaml'), stringify({ health: { conditions: { 'infiniband.PortDown': portDown } } }));
}

const flags = (): string[] => [
  `--path.sysfs=${root}/sys`,
  `--path.procfs=${root}/proc`,
  `--path.dev=${root}/dev`,
  `--config.file=${root}/config.yaml`,
  `--podresources.socket=${root}/absent.sock`,
  '--podresources.checkpoint=',
  '--state.file=',
  '--log.level=error',
  ...Object.keys(familyLoaders)
    .filter((name) => name !== infiniband.name)
    .map((name) => `--no-probe.${name}`),
];

/** Says how to read only where no agent is asked: an agent has its own flags. */
const health = (address: string, ...more: string[]): Promise<Ran> => {
  const own = address.startsWith('/') ? flags() : askingFlags();
  return run(['health', ...own, `--web.listen-address=${address}`, ...more]);
};
const askingFlags = (): string[] => flags().filter((flag) => /^--(?:config|state|log)\./.test(flag));

/** Changes the simulated files that end so. */
function change(values: Readonly<Record<string, string>>): void {
  for (const [ending, text] of Object.entries(values)) {
    const path = files.find((name) => name.endsWith(ending));
    if (path === undefined) throw new Error(`no file ends in ${ending}`);
    writer.apply({ files: { [path]: `${text}\n` }, links: {} });
  }
}
const pull = (name: string): void => change({ [`${name}/ports/1/state`]: '1: DOWN', [`${name}/ports/1/phys_state`]: '2: Polling' });
const plug = (name: string): void => change({ [`${name}/ports/1/state`]: '4: ACTIVE', [`${name}/ports/1/phys_state`]: '5: LinkUp' });
/** A subnet manager is still awaited: an HCA that works less well. */
const narrow = (name: string): void => change({ [`${name}/ports/1/state`]: '2: INIT' });

/** Serves on a free port; the rest of the flags as for the command. */
async function startAgent(...more: string[]): Promise<string> {
  agent = await serve([...flags().filter((flag) => !flag.startsWith('--log.level')), '--refresh.interval=100ms', ...more]);
  await agent.until('read', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_2' }) === 1);
  return new URL(agent.url).host;
}

describe('the list of one reading', () => {
  it('names a port that is down although nobody has seen it down for long enough', async () => {
    configure({ for: '30s' });
    pull('mlx5_1');
    const words = (output: string): string[] => ['list', '--read', ...flags(), '-o', output, '--probe.infiniband.expected-ports=mlx5_*:1'];
    const { stdout } = await run(words('table'));
    const told = stdout.split('\n').map((line) => [...line.split(/ {2,}/).slice(0, 2), /PortDown.*?:/.exec(line)?.[0]]);
    expect(told.slice(1, 4)).toEqual([
      ['Pending', 'mlx5_1', 'PortDown (1) pending:'],
      ['Healthy', 'mlx5_0', undefined],
      ['Healthy', 'mlx5_2', undefined],
    ]);
    const { devices } = JSON.parse((await run(words('json'))).stdout) as { readonly devices: readonly { readonly health: object }[] };
    expect(devices[0]?.health).toMatchObject({
      state: 'healthy',
      conditions: [],
      pending: [{ type: 'PortDown', instance: '1', reason: 'LinkPolling', remedy: 'check-cable', countsAt: expect.stringMatching(/Z$/) }],
    });
    expect(devices[1]?.health).not.toHaveProperty('pending');
  });
});

it('explains no pod while the kubelet does not answer: neither by one reading nor by the agent', async () => {
  const unknown =
    /^device-agent: ml\/a: It is not known whether such a pod holds a device: the kubelet gives no full answer \(socket-missing\)\.$/m;
  expect(await run(['explain', 'ml/a', '--read', ...flags()])).toMatchObject({
    status: 1,
    stdout: '',
    stderr: expect.stringMatching(unknown),
  });
  const address = await startAgent();
  const asked = await run(['explain', 'ml/a', ...askingFlags(), `--web.listen-address=${address}`]);
  expect(asked).toMatchObject({ status: 1, stdout: '', stderr: expect.stringMatching(unknown) });
});

describe('health of a running agent', () => {
  it('is 0 with one line while all is well, and 1 with the worst device first once something is not', async () => {
    const address = await startAgent();
    expect(await health(address)).toMatchObject({
      status: 0,
      stdout: '3 of 3 devices healthy\n',
      stderr: expect.stringMatching(/^asked the agent at .*\n$/),
    });
    pull('mlx5_1');
    await agent?.until('noticed', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_1' }) === 0);
    const { status, stdout } = await health(address);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^infiniband\/mlx5_1 unhealthy, PortDown\/1 \(LinkPolling\): port 1 is.*\n$/);
    expect(Buffer.byteLength(stdout.trimEnd())).toBeLessThanOrEqual(80);
    expect(await health(address, '--device=mlx5_0')).toMatchObject({ status: 0, stdout: '1 of 1 devices healthy\n' });
    expect(await health(address, '--device', 'infiniband/mlx5_1')).toMatchObject({ status: 1 });
    expect(await health(address, '--device=0000:20:00.0'), 'by PCI address').toMatchObject({ status: 1 });
  });

  it('tells each condition with its remedy as text, and everything as JSON', async () => {
    const address = await startAgent();
    pull('mlx5_1');
    await agent?.until('noticed', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_1' }) === 0);
    const { stdout } = await health(address, '-o', 'text');
    expect(stdout).toMatch(
      /^ {2}infiniband\/mlx5_1 unhealthy for \S+ s\n {4}PortDown \(1\): fatal, LinkPolling\n {6}port 1 is down.*\n {6}To do \(check-cable\): Check cable, /m,
    );
    const json = JSON.parse((await health(address, '-o', 'json')).stdout) as { devices: object[] };
    expect(json).toMatchObject({ status: 1, source: 'agent' });
    expect(json.devices[0]).toMatchObject({ key: 'infiniband/mlx5_1', health: { state: 'unhealthy', conditions: [{ type: 'PortDown' }] } });
  });

  it('names a fault that waits to count, and does not call its device plainly healthy', async () => {
    configure({ for: '1h' });
    const address = await startAgent();
    pull('mlx5_1');
    await agent?.until('noticed', (page) => seriesValue(page, 'device_link_up', { device: 'mlx5_1' }) === 0);
    expect(await health(address)).toMatchObject({ status: 0, stdout: '3 of 3 devices healthy, infiniband/mlx5_1 PortDown/1 pending\n' });
    expect((await health(address, '-o', 'text')).stdout).toMatch(
      /^ {2}infiniband\/mlx5_1 healthy for \S+ s\n {4}PortDown \(1\): fatal, LinkPolling, pending\n {6}port 1 is down.*\n {6}It does not count yet\. If it continues, it counts from .* UTC\.\n {6}To do \(check-cable\): /m,
    );
    const page = await (await fetch(`${agent?.url}/devices/infiniband/mlx5_1`)).text();
    expect(page).toMatch(
      /<section class="say pending".*Pending<\/span>.*<b>PortDown \(1\)<\/b>.*fatal, LinkPolling, pending.* It does not count yet\./,
    );
    expect(page).toContain('Check cable, transceiver and the remote port.');
  });

  it('tells a fault that ended as what was, and asks for nothing', async () => {
    configure({ for: '0s', recovery: '1h' });
    const address = await startAgent();
    pull('mlx5_1');
    await agent?.until('noticed', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_1' }) === 0);
    plug('mlx5_1');
    const metrics = await agent?.until('up again', (page) => seriesValue(page, 'device_link_up', { device: 'mlx5_1' }) === 1);
    expect(seriesValue(metrics ?? '', 'device_health_condition', { condition: 'PortDown', part: '1', remedy: 'none' })).toBe(1);
    expect(await health(address)).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(/^infiniband\/mlx5_1 unhealthy, PortDown\/1 \(LinkPolling\) recovering: it was 'por/),
    });
    expect((await health(address, '-o', 'text')).stdout).toMatch(
      /PortDown \(1\): fatal, LinkPolling, recovering\n {6}It ended .* ago\. Its last message was 'port 1 is down, .*'\.\n {6}If it does not return, .*No action is needed\.\n/,
    );
    const page = await (await fetch(`${agent?.url}/devices/infiniband/mlx5_1`)).text();
    expect(page).toMatch(
      /<section class="say recovering".*Recovering<\/span>.*still unhealthy.*<b>PortDown \(1\)<\/b>.* It ended .* ago\./,
    );
    expect(page).toContain('No action is needed.');
    expect(page).not.toContain('Check cable');
  });

  it('logs that a condition was withdrawn in the past tense', async () => {
    configure({ for: '0s', recovery: '0s' });
    await startAgent();
    pull('mlx5_1');
    await agent?.until('noticed', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_1' }) === 0);
    plug('mlx5_1');
    await agent?.until('well again', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_1' }) === 1);
    const lines = (agent?.log() ?? '').split('\n').filter((line) => line.includes('a condition was cleared'));
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        level: 'info',
        device: 'infiniband/mlx5_1',
        condition: 'PortDown',
        remedy: 'none',
        detail: expect.stringMatching(
          /^it was withdrawn \d+ s after it began; its last message was 'port 1 is down, physical state polling'$/,
        ),
      },
    ]);
  });

  it('is 2 for a device that nobody knows, with the one that was probably meant', async () => {
    const address = await startAgent();
    expect(await health(address, '--device=mlx5_11')).toMatchObject({
      status: 2,
      stdout: expect.stringMatching(/^no device mlx5_11; did you mean mlx5_1\?\n$/),
    });
    expect(await health(address, '--device=GPU-7')).toMatchObject({ status: 2, stdout: 'no device GPU-7\n' });
  });

  it('is 2 while a device is unknown, and 1 when another one has a problem besides', async () => {
    const address = await startAgent('--refresh.timeout=3s', '--refresh.stale-after=5s');
    const counter = files.find((name) => name.endsWith('mlx5_0/ports/1/counters/port_rcv_data')) as string;
    removeAsKernel(join(root, counter));
    execFileSync('mkfifo', [join(root, counter)]);
    await agent?.until('unknown', (page) => seriesValue(page, 'device_health', { device: 'mlx5_0', state: 'unknown' }) === 1);
    expect(await health(address)).toMatchObject({
      status: 2,
      stdout: expect.stringMatching(/^(?:\d unknown, first: )?infiniband\/mlx5_0 unknown, /),
    });
    pull('mlx5_1');
    await agent?.until('noticed', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_1' }) === 0);
    expect(await health(address)).toMatchObject({ status: 1, stdout: expect.stringMatching(/^infiniband\/mlx5_1 unhealthy, /) });
  });
});

describe('health without a running agent', () => {
  it('reads once by itself and says so', async () => {
    expect(await health(`${root}/nobody.sock`)).toMatchObject({ status: 0, stdout: '3 of 3 devices healthy (one reading)\n' });
    narrow('mlx5_2');
    change({ 'mlx5_2/ports/1/phys_state': '5: LinkUp' });
    const conditions = { 'infiniband.PortInitializing': { for: '0s', severity: 'fatal' } };
    writeFileSync(join(root, 'config.yaml'), stringify({ health: { conditions } }));
    const { status, stdout } = await health(`${root}/nobody.sock`);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^infiniband\/mlx5_2 unhealthy, PortInitializing\/1 \(/);
  });

  it('is 2 on a machine without devices', async () => {
    const stdout = 'not read completely since the boot: infiniband (sysfs-unusable)\n';
    expect(await health(`${root}/nobody.sock`, `--path.sysfs=${root}/proc`)).toMatchObject({ status: 2, stdout });
  });

  it('asks no stranger that listens at the address', async () => {
    stranger = createServer((_, response) => response.end('{"devices": [{"id": "x"}]}'));
    await new Promise<void>((resolve) => stranger?.listen(join(root, 'stranger.sock'), resolve));
    expect(await health(`${root}/stranger.sock`)).toMatchObject({ status: 0, stdout: '3 of 3 devices healthy (one reading)\n' });
  });

  it('does not wait for one who accepts and never answers', async () => {
    stranger = createServer(() => {});
    await new Promise<void>((resolve) => stranger?.listen(join(root, 'mute.sock'), resolve));
    expect(await health(`${root}/mute.sock`)).toMatchObject({ status: 0, stdout: '3 of 3 devices healthy (one reading)\n' });
  });

  it('is 2 while an agent has not read anything yet', async () => {
    stranger = createServer((_, response) => response.writeHead(503).end('{"error":{"code":"not-ready"}}'));
    await new Promise<void>((resolve) => stranger?.listen(join(root, 'early.sock'), resolve));
    expect(await health(`${root}/early.sock`)).toMatchObject({ status: 2, stdout: 'the agent has not read the hardware yet\n' });
  });

  it('is 2 for wrong usage too, which is no problem of the hardware', async () => {
    expect(await health(`${root}/nobody.sock`, '--devise=x')).toMatchObject({ status: 2, stdout: '' });
  });
});

describe('an agent that stands still', () => {
  it('is not taken for a healthy node by any that shows its last snapshot', async () => {
    const devices = [state(device({ id: 'a' }), { verdict: { state: 'healthy', sinceMs: 1, conditions: [] } })];
    let fault: string | undefined;
    const last = { ...snapshot, devices, families: [familyState('toy')], podResources: podResources([], { answeredAtMs: TAKEN_AT_MS }) };
    const { server, url } = await start({ snapshot: () => last, parts: { fault: () => fault } });
    try {
      const address = new URL(url).host;
      const doctor = async () => {
        const { stdout } = await run(['doctor', '-o', 'json', ...askingFlags(), `--web.listen-address=${address}`]);
        const { checks } = JSON.parse(stdout) as { readonly checks: readonly CheckResult[] };
        return ['devices', 'listen-address', 'running-agent'].map((wanted) => checks.find(({ name }) => name === wanted)?.status);
      };
      const shown = async () => /<section class="say (\w+)".*?<h1>(.*?)<\/h1>/.exec(await (await fetch(url)).text())?.slice(1);
      expect(await health(address)).toMatchObject({ status: 0, stdout: '1 of 1 devices healthy\n' });
      expect(await doctor()).toEqual(['ok', 'ok', 'ok']);
      expect(await shown()).toEqual(['healthy', 'The device is healthy']);

      fault = 'There was no new snapshot for 3600 s.';
      const words = 'he agent does not work: There was no new snapshot for 3600 s';
      expect(await health(address)).toMatchObject({ status: 2, stdout: `t${words}\n` });
      expect(await health(address, '--device=a')).toMatchObject({ status: 2, stdout: `t${words}\n` });
      expect(await doctor()).toEqual(['skipped', 'ok', 'finding']);
      expect(await shown()).toEqual(['unknown', `T${words}`]);
    } finally {
      await server.close();
    }
  });
});

describe('one condition for node-problem-detector', () => {
  it('comes from the running agent', async () => {
    const address = await startAgent();
    expect(await health(address, '--npd=DevicesUnhealthy')).toMatchObject({
      status: 0,
      stdout: 'no device has a fatal condition\n',
      stderr: expect.stringMatching(/^asked the agent at .*\n$/),
    });
    pull('mlx5_1');
    await agent?.until('noticed', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_1' }) === 0);
    const { status, stdout } = await health(address, '--npd', 'DevicesUnhealthy');
    expect([status, stdout]).toEqual([1, expect.stringMatching(/^infiniband\/mlx5_1 unhealthy, PortDown\/1 \(.*\n$/)]);
    expect(Buffer.byteLength(stdout.trimEnd())).toBeLessThanOrEqual(80);
    expect(await health(address, '--npd=DeviceNotHealthy')).toMatchObject({ status: 1, stdout });
    expect(await health(address, '--npd=DevicesMissing')).toMatchObject({ status: 0 });
  });

  it('is unknown without an agent, although the hardware could be read, and no event', async () => {
    expect(await health(`${root}/nobody.sock`, '--npd=DevicesUnknown')).toMatchObject({
      status: 2,
      stdout: 'no agent answers\n',
      stderr: '',
    });
    expect(await health(`${root}/nobody.sock`, '--npd=DeviceNotHealthy')).toMatchObject({ status: 0, stdout: 'no agent answers\n' });
  });

  it('is unknown where the agent stands still or does not let itself be asked', async () => {
    let [code, body] = [503, 'There was no new snapshot for 61 s.\n'];
    const server = createServer((_, response) => void response.writeHead(code).end(body)).listen(`${root}/other.sock`);
    stranger = server;
    const asked = (): Promise<Ran> => health(`${root}/other.sock`, '--npd=DevicesUnhealthy');
    expect(await asked()).toMatchObject({ status: 2, stdout: 'the agent does not work: There was no new snapshot for 61 s.\n' });
    [code, body] = [401, ''];
    expect(await asked()).toMatchObject({ status: 2, stdout: 'the agent cannot be asked: it asks for a password\n' });
  });

  it.each([
    ['--npd=Devices'],
    ['--npd=DevicesMissing', '--read'],
    ['--npd=DevicesMissing', '--device=mlx5_0'],
    ['--npd=DevicesMissing', '-o', 'json'],
  ])('is refused with status 2 as %s %s', async (...words) => {
    expect(await health(`${root}/nobody.sock`, ...words)).toMatchObject({ status: 2, stdout: '', stderr: expect.stringMatching(/\S/) });
  });
});

describe('the line for node-problem-detector', () => {
  it('has no more than the bytes that are kept, and never half a character', () => {
    expect(shortened('short', 80)).toBe('short');
    expect(shortened('x'.repeat(80), 80)).toBe('x'.repeat(80));
    expect(shortened('x'.repeat(81), 80)).toBe(`${'x'.repeat(77)}...`);
    const umlauts = shortened('ü'.repeat(60), 80);
    expect(Buffer.byteLength(umlauts)).toBeLessThanOrEqual(80);
    expect(umlauts).toBe(`${'ü'.repeat(38)}...`);
    expect(shortened('a\u001b[31mb\nc', 80)).toBe('a [31mb c');
  });
});
