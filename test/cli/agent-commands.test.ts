import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { familyLoaders } from '../../src/probes/families.ts';
import { MAIN, run } from './command-line.ts';

type Child = ChildProcessByStdio<null, Readable, Readable>;

let folder: string;
const running = new Set<Child>();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'commands-'));
  for (const path of ['sys/class', 'proc', 'dev', 'tmp']) mkdirSync(join(folder, path), { recursive: true });
});
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
  rmSync(folder, { recursive: true, force: true });
});

const only = (...families: string[]): string[] =>
  Object.keys(familyLoaders)
    .filter((family) => !families.includes(family))
    .map((family) => `--no-probe.${family}`);

const nodeFlags = (): string[] => [
  `--path.sysfs=${folder}/sys`,
  `--path.procfs=${folder}/proc`,
  `--path.dev=${folder}/dev`,
  `--podresources.socket=${folder}/kubelet.sock`,
  '--podresources.checkpoint=',
];

interface Started {
  readonly child: Child;
  /** Resolves with everything written so far once it matches. */
  until(pattern: RegExp): Promise<string>;
  readonly ended: Promise<{ status: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }>;
}

function start(args: readonly string[]): Started {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env.PATH, TMPDIR: join(folder, 'tmp'), DEVICE_AGENT_STATE_FILE: join(folder, 'state.json') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const text = { stdout: '', stderr: '' };
  let look = (): void => {};
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (part: string) => {
      text[name] += part;
      look();
    });
  }
  const ended = new Promise<Awaited<Started['ended']>>((resolve) => {
    child.once('close', (status, signal) => resolve({ status, signal, ...text }));
  });
  const until = (pattern: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      look = () => {
        if (pattern.test(text.stdout + text.stderr)) resolve(text.stdout + text.stderr);
      };
      void ended.then(() => reject(new Error(`ended before ${pattern}: ${text.stderr}`)));
      look();
    });
  return { child, until, ended };
}

function get(socketPath: string, path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        body += part;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    asked.on('error', reject);
    asked.end();
  });
}

describe('serve', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('answers until %s, then ends with 0 and leaves no socket', async (signal) => {
    const socket = join(folder, 'web.sock');
    const { child, until, ended } = start(['serve', ...nodeFlags(), ...only(), `--web.listen-address=${socket}`, '--log.format=json']);
    await until(/"message":"serving"/);
    expect((await get(socket, '/healthz')).status).toBe(200);
    expect((await get(socket, '/metrics')).body).toContain('device_agent_build_info');
    child.kill(signal);
    const { status, stdout, stderr } = await ended;
    expect([status, stdout, existsSync(socket)]).toEqual([0, '', false]);
    for (const line of stderr.trimEnd().split('\n')) expect(JSON.parse(line)).toHaveProperty('message');
  });

  it('says in one sentence that it cannot listen', async () => {
    const { status, stderr } = await run([
      'serve',
      ...nodeFlags(),
      ...only(),
      `--web.listen-address=${folder}/none/web.sock`,
      '--log.level=error',
    ]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^device-agent: cannot listen on .*\/none\/web\.sock: .*\n.*--web\.listen-address\.\n$/);
  });

  it('ends with 0 although a read hangs in the kernel', async () => {
    makeHungPort();
    const flags = [...nodeFlags(), ...only('infiniband'), `--web.listen-address=${folder}/web.sock`, '--refresh.timeout=200ms'];
    const { child, until, ended } = start(['serve', ...flags]);
    await until(/probe-hung/);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ status: 0, signal: null });
  });
});

describe('list', () => {
  it('says where no device can be found for want of a sysfs', async () => {
    const { status, stderr } = await run(['list', ...nodeFlags(), ...only(), `--path.sysfs=${folder}/not-mounted`]);
    expect(status).toBe(0);
    expect(stderr).toMatch(
      /WARN +no device can be found detail="[^"]*\/not-mounted cannot be read \(ENOENT\)" remedy="Mount the host's directory/,
    );
  });

  it('prints devices, allocations and problems as JSON under the names of the API', async () => {
    const { status, stdout, stderr } = await run(['list', '-o', 'json', ...nodeFlags(), ...only()]);
    expect(JSON.parse(stdout)).toMatchObject({ devices: [], allocations: [], problems: [{ code: 'socket-missing' }] });
    expect(stderr).toContain('socket-missing');
    expect(status).toBe(0);
  });

  it('prints for Prometheus what is said of devices and containers, and nothing of the agent', async () => {
    const device = join(folder, 'sys/class/infiniband/mlx5_0');
    mkdirSync(join(device, 'ports/1'), { recursive: true });
    writeFileSync(join(device, 'node_type'), '1: CA\n');
    writeFileSync(join(device, 'ports/1/state'), '4: ACTIVE\n');
    const { status, stdout } = await run(['list', '-o', 'prom', ...nodeFlags(), ...only('infiniband')]);
    expect(stdout).toMatch(/^device_info\{.*device="mlx5_0"/m);
    expect(
      [...stdout.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name).filter((name) => !/^(container_)?device_(?!agent_)/.test(name ?? '')),
    ).toEqual([]);
    expect(status).toBe(0);
  });

  it('says that a machine has no device, and what keeps the command from seeing more', async () => {
    const { stdout } = await run(['list', ...nodeFlags(), ...only()]);
    expect(stdout).toMatch(/^There is no device\. .*\nProblems\nkubelet: \S+kubelet\.sock: no such socket · Check that .*\n$/);
  });

  it('ends with 0 although a read hangs in the kernel', async () => {
    makeHungPort();
    const { status, signal, stderr } = await run(['list', ...nodeFlags(), ...only('infiniband'), '--refresh.timeout=300ms']);
    expect(stderr).toContain('probe-hung');
    expect([status, signal]).toEqual([0, null]);
  });
});

/** An HCA of which one file never answers. */
function makeHungPort(): void {
  const port = join(folder, 'sys/class/infiniband/mlx5_0/ports/1');
  mkdirSync(port, { recursive: true });
  writeFileSync(join(folder, 'sys/class/infiniband/mlx5_0/node_type'), '1: CA\n');
  execFileSync('mkfifo', [join(port, 'state')]);
}

describe('demo', () => {
  const small = ['--sim.devices=nvidia=1,infiniband=2,infiniband.vf=2,fpga=1', '--sim.pods=4', '--refresh.interval=200ms'];

  it('shows containers with their devices, works with the other commands, and leaves nothing', async () => {
    const socket = join(folder, 'web.sock');
    const { child, until, ended } = start(['demo', ...small, `--web.listen-address=${socket}`]);
    const text = await until(/Ctrl-C/);
    const [, source = 'no such line'] = /^ {2}(\. .*\/env)$/m.exec(text) ?? [];
    const [, list = ''] = /^ {2}(node .*) demo fault$/m.exec(text) ?? [];
    const table = execFileSync('sh', ['-c', `${source} && ${list} list --read`], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    expect(table.split('\n').length).toBeGreaterThan(2);
    await expect.poll(async () => (await get(socket, '/metrics')).body).toMatch(/^container_device_allocation\{/m);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ status: 0, signal: null });
    expect([readdirSync(join(folder, 'tmp')), existsSync(socket)]).toEqual([[], false]);
  });

  it('takes its node away again when it cannot listen', async () => {
    const { ended } = start(['demo', ...small, `--web.listen-address=${folder}/none/web.sock`]);
    expect(await ended).toMatchObject({ status: 1, stderr: expect.stringContaining('cannot listen') });
    expect(readdirSync(join(folder, 'tmp'))).toEqual([]);
  });

  it.each([
    ['is not there', '/nowhere', 'ENOENT: no such file or directory'],
    ['has too long a path', 'x'.repeat(60), 'the paths of its sockets would have more than 107 bytes'],
  ])('says in a sentence that its directory %s', async (_what, name, problem) => {
    const directory = name.startsWith('/') ? name : join(folder, name);
    if (directory !== name) mkdirSync(directory);
    const { status, stderr } = await run(['demo', ...small], { TMPDIR: directory });
    expect(stderr).toBe(
      `device-agent: the simulated node cannot be created below ${directory}: ${problem}\n` +
        'Set TMPDIR to a writable directory that has a short path, some MiB of free space and support for sockets.\n',
    );
    expect(status).toBe(1);
    if (directory !== name) expect(readdirSync(directory)).toEqual([]);
  });

  it('ends in a sentence when somebody removes its node', async () => {
    const socket = join(folder, 'web.sock');
    const { until, ended } = start(['demo', ...small, '--sim.step=50ms', `--web.listen-address=${socket}`]);
    await until(/Ctrl-C/);
    const node = join(folder, 'tmp', readdirSync(join(folder, 'tmp'))[0] as string);
    // In one step, unlike a removal, during which it would go on writing.
    renameSync(node, join(folder, 'gone'));
    const { status, stderr } = await ended;
    expect(stderr).toMatch(/^device-agent: the simulated node cannot be created below .*: ENOENT: .*\nSet TMPDIR [^\n]+\n$/m);
    expect([status, existsSync(socket)]).toEqual([1, false]);
  });

  it('does not know its size flags anywhere else', async () => {
    expect(await run(['serve', '--sim.pods=3'])).toMatchObject({ status: 2, stderr: expect.stringContaining('unknown flag --sim.pods') });
  });
});
