import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { decodeSaved } from '../../src/host/fs/saved-state.ts';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { MAIN, run } from '../cli/command-line.ts';
import { PROGRAM } from '../support/program.ts';
import { type ServedAgent, seriesValue, serve, startAgent } from '../support/serve.ts';
import { ServedNode } from './served-node.ts';

const HCA = 'example.com/hca';
const WAIT = { interval: 50 };

let node: ServedNode;
let agents: ServedAgent[];
let control: string;
let feed: string;

beforeEach(() => {
  node = new ServedNode({ family: infiniband, counts: { infiniband: 2 }, resource: HCA, config: {} });
  agents = [];
  control = join(node.root, 'state/control.sock');
  feed = join(node.root, 'health.sock');
});
afterEach(async () => {
  for (const agent of agents) await agent.stop('SIGKILL');
  await node.stop();
});

const flags = (): readonly string[] => [...node.flags(), `--health-feed.socket=${feed}`];

async function start(): Promise<ServedAgent> {
  const agent = await serve(flags());
  agents.push(agent);
  await agent.until('both ports', (page) => seriesValue(page, 'device_health', { device: 'mlx5_1', state: 'healthy' }) === 1);
  return agent;
}
const identity = (path: string): bigint | undefined => lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
const modeOf = (path: string): number => statSync(path).mode & 0o777;
const ask = (...words: readonly string[]) => run([...words, `--state.file=${node.root}/state/health.json`]);
const isUp = (page: string, socket: string): number | undefined => seriesValue(page, 'device_agent_socket_up', { socket });

/** The process that answers on the control socket. */
async function answering(): Promise<number> {
  const { body } = await new Promise<{ body: string }>((resolve, reject) => {
    const sent = process.getBuiltinModule('node:http').get({ socketPath: control, path: '/api/v1/status', agent: false }, (response) => {
      response.resume().once('end', () => resolve({ body: String(response.headers['device-agent']) }));
    });
    sent.once('error', reject);
  });
  return Number(/pid=(\d+)/.exec(body)?.[1]);
}

describe('two agents with one state file', () => {
  it('the second has the sockets when it can answer, and they are there after the first has ended', async () => {
    const first = await start();
    const before = [identity(control), identity(feed)];
    const second = await start();
    await expect.poll(answering, WAIT).toBe(second.child.pid);
    await expect.poll(() => identity(feed) !== before[1], WAIT).toBe(true);
    expect(await first.stop()).toBe(0);
    expect(await answering()).toBe(second.child.pid);
    expect((await ask('health')).stdout).toBe('2 of 2 devices healthy\n');
    expect(existsSync(feed)).toBe(true);
    expect(await second.stop()).toBe(0);
    expect([existsSync(control), existsSync(feed)]).toEqual([false, false]);
  });

  it('the first has them again when the second is killed, also before it could answer', async () => {
    const first = await start();
    const second = await start();
    await expect.poll(answering, WAIT).toBe(second.child.pid);
    await second.stop('SIGKILL');
    await expect.poll(() => answering().catch(() => 0), WAIT).toBe(first.child.pid);
    const third = await serve(flags());
    agents.push(third);
    await third.stop('SIGKILL');
    await expect.poll(() => answering().catch(() => 0), WAIT).toBe(first.child.pid);
    expect(first.log()).toContain('the newer agent has ended; this agent goes on');
    expect(await first.stop()).toBe(0);
  });

  it('only the second writes the state: a container that both saw is counted once', async () => {
    await node.kubelet.start();
    const first = await start();
    const second = await start();
    await expect.poll(answering, WAIT).toBe(second.child.pid);
    const pod = {
      namespace: 'n',
      name: 'short',
      uid: 'u1',
      containers: [{ name: 'c', devices: [{ resource: HCA, id: 'mlx5_0', numaNodes: [] }] }],
    };
    node.kubelet.admitPod(pod as never);
    for (const agent of [first, second])
      await agent.until('the pod', (page) => seriesValue(page, 'container_device_allocation', { pod: 'short' }) === 1);
    node.kubelet.removePod('n', 'short');
    for (const agent of [first, second])
      await agent.until('its end', (page) => seriesValue(page, 'container_device_allocation', { pod: 'short' }) === undefined);
    await first.stop();
    await second.stop();
    const { rows } = JSON.parse((await ask('usage', '-o', 'json', '--by=pod')).stdout) as { rows: { name: string; containers: number }[] };
    expect(rows.filter(({ name }) => name === 'n/short').map(({ containers }) => containers)).toEqual([1]);
    for (const [name, format] of [
      ['health.json', 'device-agent-health'],
      ['usage.json', 'device-agent-usage'],
    ] as const) {
      const text = readFileSync(join(node.root, 'state', name), 'utf8');
      const header = JSON.parse(text.slice(0, text.indexOf('\n'))) as { format: string; version: number };
      const read = decodeSaved({ format: header.format, version: header.version, name }, text);
      expect([format, read.ignored]).toEqual([header.format, undefined]);
    }
    expect(readdirSync(join(node.root, 'state')).filter((one) => one.endsWith('.tmp') || one.startsWith('.'))).toEqual([]);
  });
});

describe('the older of two agents', () => {
  it('saves and shows what it sees, while the newer one runs and after that was killed', async () => {
    await node.kubelet.start();
    const first = await start();
    const second = await start();
    await expect.poll(answering, WAIT).toBe(second.child.pid);
    const held = (page: string): number => seriesValue(page, 'device_allocated_seconds_total', { device: 'mlx5_0' }) ?? 0;
    const saved = (): string => readFileSync(join(node.root, 'state/usage.json'), 'utf8');
    const pod = async (name: string, alive: readonly ServedAgent[]): Promise<void> => {
      const containers = [{ name: 'c', devices: [{ resource: HCA, id: 'mlx5_0', numaNodes: [] }] }];
      node.kubelet.admitPod({ namespace: 'n', name, uid: name, containers } as never);
      const before = await Promise.all(alive.map(async (agent) => held(await agent.metrics())));
      for (const [at, agent] of alive.entries()) await agent.until(`totals with ${name}`, (page) => held(page) > (before[at] ?? 0) + 1);
      node.kubelet.removePod('n', name);
      for (const agent of alive) {
        await agent.until('its end', (page) => seriesValue(page, 'container_device_allocation', { pod: name }) === undefined);
      }
    };
    await pod('both', [first, second]);
    await second.stop('SIGKILL');
    await expect.poll(() => answering().catch(() => 0), WAIT).toBe(first.child.pid);
    await pod('alone', [first]);
    const onDisk = saved();
    await expect.poll(saved, WAIT).not.toBe(onDisk);
    await first.stop('SIGKILL');
    const third = await start();
    const answer = await fetch(`${third.url}/api/usage?by=pod`);
    const { rows } = (await answer.json()) as { rows: { name: string; containers: number; allocatedSeconds: number }[] };
    const told = rows.map(({ name, containers, allocatedSeconds }) => [name, containers, allocatedSeconds > 1]);
    expect(told.toSorted()).toEqual([
      ['n/alone', 1, true],
      ['n/both', 1, true],
    ]);
  });
});

const REFUSED = 'another agent has the control socket and does not give it up';

describe('an agent that starts beside', () => {
  it('one that hangs says so, serves, ends when it is told to, and takes over when the other goes on', async () => {
    const first = await start();
    first.child.kill('SIGSTOP');
    const early = spawn(process.execPath, [PROGRAM, 'serve', ...flags(), '--web.listen-address=127.0.0.1:0'], { stdio: 'pipe' });
    let log = '';
    early.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString();
    });
    await expect.poll(() => log, WAIT).toContain('configuration in use');
    const ended = once(early, 'close');
    early.kill('SIGTERM');
    const second = start();
    expect([await ended, log]).toEqual([[0, null], expect.stringContaining('stopping')]);
    expect((await second).log()).toContain(REFUSED);
    first.child.kill('SIGCONT');
    await expect.poll(() => answering().catch(() => 0), WAIT).toBe((await second).child.pid);
    expect(await first.stop()).toBe(0);
    expect((await ask('health')).stdout).toBe('2 of 2 devices healthy\n');
  });

  it('a process that takes connections on the control socket and says nothing', async () => {
    mkdirSync(join(node.root, 'state'), { recursive: true });
    const mute = createServer(() => {}).listen(control);
    await once(mute, 'listening');
    const agent = await start();
    expect(agent.log()).toContain(REFUSED);
    expect(await agent.stop()).toBe(0);
    mute.close();
  });

  it.each([0, 1])('another one that starts at the same time, with %i older ones: one of them has the state', async (older) => {
    if (older > 0) await start();
    const pair = await Promise.all([start(), start()]);
    const given = 'a newer agent takes over';
    await expect.poll(() => agents.filter((agent) => agent.log().includes(given)).length, WAIT).toBe(older + 1);
    const last = pair.find((agent) => !agent.log().includes(given));
    await expect.poll(() => answering().catch(() => 0), WAIT).toBe(last?.child.pid);
    for (const agent of agents) expect(await agent.stop()).toBe(0);
  });
});

describe('sockets of a running agent', () => {
  it('are open to its user only, whatever the umask', async () => {
    agents.push(await startAgent(['sh', '-c', 'umask 0; exec "$0" "$@"', process.execPath, MAIN, 'serve', ...flags()]));
    expect([modeOf(control), modeOf(feed)]).toEqual([0o600, 0o600]);
  });

  it('have the configured mode', async () => {
    agents.push(await serve([...flags(), '--health-feed.socket-mode=0660']));
    expect([modeOf(control), modeOf(feed)]).toEqual([0o600, 0o660]);
  });

  it('come back after a removal', async () => {
    const agent = await start();
    for (const path of [control, feed, control, feed]) {
      unlinkSync(path);
      await expect.poll(() => existsSync(path), WAIT).toBe(true);
    }
    expect((await ask('health')).stdout).toBe('2 of 2 devices healthy\n');
    expect(isUp(await agent.metrics(), 'control')).toBe(1);
  });

  it.each([
    ['a file', (path: string) => writeFileSync(path, 'mine'), 'file'],
    ['a link', (path: string) => symlinkSync('/etc/hostname', path), 'symbolic link'],
    ['a FIFO', (path: string) => execFileSync('mkfifo', [path]), 'pipe'],
    ['a directory', (path: string) => mkdirSync(path), 'directory'],
  ])('are missed by nobody but their clients where %s is at the place, and said', async (_name, put, what) => {
    put(feed);
    const before = identity(feed);
    const agent = await start();
    expect(isUp(await agent.metrics(), 'dra')).toBe(0);
    expect(agent.log()).toContain(`the path holds a ${what} that is not a socket`);
    expect(identity(feed)).toBe(before);
    const { stdout, status } = await run(['doctor', ...flags()]);
    expect([status, stdout]).toEqual([
      1,
      expect.stringContaining(`dra: ${feed}: the path holds a ${what} that is not a socket; remove it`),
    ]);
    rmSync(feed, { recursive: true });
    await agent.until('the socket', (page) => isUp(page, 'dra') === 1);
    expect(lstatSync(feed).isSocket()).toBe(true);
  });

  it('a state file below /proc costs the state, and neither the start nor the end', async () => {
    const agent = await serve([...flags(), '--state.file=/proc/x/h.json']);
    agents.push(agent);
    await agent.until('both ports', (page) => seriesValue(page, 'device_health', { device: 'mlx5_1', state: 'healthy' }) === 1);
    expect(isUp(await agent.metrics(), 'control')).toBe(0);
    expect(await agent.stop()).toBe(0);
  });
});
