import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PseudoTerminal } from '../support/pseudo-terminal.ts';
import { nodeOf, type ServedAgent, startAgent } from '../support/serve.ts';
import { MAIN, type Ran, run } from './command-line.ts';

const SMALL = [
  '--sim.devices=amdgpu=1,netdev=1,nvme=1,nvidia=2,infiniband=1,infiniband.vf=1,fpga=1',
  '--sim.pods=2',
  '--sim.story=off',
  '--refresh.interval=500ms',
];
const REMEDY = 'Run "device-agent demo fault" for the faults of the running demo and their devices.\n';

let directory: string;
let demo: ServedAgent;
let root: string;
const command = (...words: string[]): Promise<Ran> => run(['demo', 'fault', ...words], { TMPDIR: directory });
const start = (): Promise<ServedAgent> =>
  startAgent([process.execPath, MAIN, 'demo', ...SMALL], { env: { ...process.env, TMPDIR: directory } });

/** Sends bytes to the control socket, and gives what comes until the connection ends. */
function send(text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(join(root, 'control.sock'), () => socket.write(text));
    let answer = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      answer += part;
    });
    socket.on('error', () => {});
    socket.once('close', () => resolve(answer));
  });
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'faults-'));
  demo = await start();
  await demo.until('a welcome', () => demo.log().includes('Ctrl-C'));
  root = nodeOf(demo);
});
afterAll(async () => {
  expect(await demo.stop('SIGINT')).toBe(0);
  expect(readdirSync(directory)).toEqual([]);
  rmSync(directory, { recursive: true });
});

describe('demo fault', () => {
  it('lists the faults, their devices and what runs', async () => {
    const { status, stdout } = await command();
    expect(status).toBe(0);
    expect(stdout.split('\n')[0]).toBe(`Faults of the demo ${demo.child.pid} at ${demo.url}`);
    expect(stdout).toMatch(/^xid79 +nvidia +The GPU falls off the bus/m);
    expect(stdout).toMatch(/^infiniband\/mlx5_0 +port-down errors silent unreadable$/m);
    expect(stdout).toMatch(/^all devices of nvidia +hung-program$/m);
    expect(stdout).toMatch(/^No fault runs\.$/m);
  });

  it('is found by commands for a node without an agent, by its devices as people call them, and not by those that say whom they ask', async () => {
    const ask = (...words: string[]): Promise<Ran> =>
      new Promise((resolve) => {
        const child = spawn(process.execPath, [MAIN, ...words], { env: { PATH: process.env.PATH, TMPDIR: directory } });
        const told = [child.stdout, child.stderr].map(async (stream) => Buffer.concat(await stream.toArray()).toString());
        child.once('close', async (status, signal) => {
          const [stdout = '', stderr = ''] = await Promise.all(told);
          resolve({ status, signal, stdout, stderr });
        });
      });
    const asked = `asked the demo ${demo.child.pid} at ${demo.url}`;
    const health = await ask('health', '--device=gpu 0');
    expect([health.status, health.stdout, health.stderr]).toEqual([0, expect.stringContaining('1 of 1'), expect.stringContaining(asked)]);
    const terminal = new PseudoTerminal({ columns: 100, rows: 30 }, [process.execPath, MAIN, 'health'], { TMPDIR: directory });
    await terminal.ended;
    expect(terminal.bytes, 'text for people on a terminal').toContain('(GPU 1) healthy');
    expect(health.stdout, 'one line elsewhere').not.toContain('(GPU');
    const list = await ask('list', '-o', 'json');
    const holders = JSON.parse(list.stdout).devices.flatMap(
      (one: { readonly holders: readonly { readonly pod: string }[] }) => one.holders,
    );
    const { stdout } = await ask('explain', holders[0].pod);
    expect(stdout).toContain(`${holders[0].namespace}/${holders[0].pod}`);
    const other = await ask('health', `--state.file=${directory}/none/health.json`, '--read', '--path.sysfs=/nowhere');
    expect(other.stderr).not.toContain('asked the demo');
    expect((await command('ecc', 'GPU 0')).stdout).toContain('ecc on nvidia/');
    await command('clear');
  });

  it('waits for a demo that lives and is busy', async () => {
    demo.child.kill('SIGSTOP');
    const asking = spawn(process.execPath, [MAIN, 'demo', 'fault'], { env: { PATH: process.env.PATH, TMPDIR: directory } });
    const text = async (stream: Readable): Promise<string> => Buffer.concat(await stream.toArray()).toString();
    const listed = text(asking.stdout);
    const ended = once(asking, 'close');
    const [first] = (await once(asking.stderr, 'data')) as [Buffer];
    demo.child.kill('SIGCONT');
    expect(first.toString()).toContain('the demo is busy; waiting for its answer');
    expect(await listed).toContain('No fault runs.');
    expect(await ended).toEqual([0, null]);
  });

  it('names the devices as the agent does', async () => {
    type Named = { readonly family: string; readonly id?: string; readonly devices?: readonly string[] };
    const { faults } = JSON.parse((await command('-o', 'json')).stdout) as { faults: readonly Named[] };
    const targets = new Set(faults.flatMap(({ family, devices = [] }) => devices.map((id) => `${family}/${id}`)));
    expect(targets.size).toBe(7);
    const known = async (): Promise<readonly string[]> => {
      const answer = await fetch(`${demo.url}/api/v1/devices`);
      return ((await answer.json()) as { devices: readonly Named[] }).devices.map(({ family, id }) => `${family}/${id}`);
    };
    await expect.poll(known).toEqual(expect.arrayContaining([...targets]));
  });

  it('lets the agent find a fault by itself, and find its end', async () => {
    const began = await command('nonfatal-error', 'fpga/0010:21:00.0');
    expect(began).toMatchObject({ status: 0, stderr: '' });
    expect(began.stdout).toBe(`nonfatal-error on fpga/0010:21:00.0 began. ${demo.url}/devices/fpga/0010:21:00.0\n`);
    await demo.until('the condition', (page) => /^device_health_condition\{device="0010:21:00.0",condition="NonfatalError"/m.test(page));
    expect((await command('nonfatal-error', '0010:21:00.0')).stdout).toMatch(/already runs for \d+ s|began/);
    const listed = JSON.parse((await command('-o', 'json')).stdout) as { demo: object; running: object[] };
    expect(listed.demo).toEqual({ pid: demo.child.pid, address: demo.url });
    expect(listed.running).toEqual([{ family: 'fpga', name: 'nonfatal-error', device: '0010:21:00.0', seconds: expect.any(Number) }]);
    expect((await command('clear', '0010:21:00.0')).stdout).toBe('nonfatal-error on fpga/0010:21:00.0 ended.\n');
    await demo.until('its end', (page) => page.includes('device_healthy{device="0010:21:00.0"} 1'));
    expect((await command('clear', 'nonfatal-error')).stdout).toBe('No such fault was running.\n');
  });

  it('makes a port unreadable and readable again, under an agent that keeps its files open', async () => {
    const unreadable = 'device_infiniband_unreadable_files{device="mlx5_0"}';
    await demo.until('a port that is up', (page) => /^device_link_up\{device="mlx5_0".*\} 1$/m.test(page));
    await command('unreadable', 'mlx5_0');
    await demo.until('no link is told', (page) => !page.includes('device_link_up{device="mlx5_0"'));
    await command('clear');
    await demo.until('the link again', (page) => /^device_link_up\{device="mlx5_0".*\} 1$/m.test(page) && page.includes(`${unreadable} 0`));
  });

  it.each([
    [['prt-down', 'mlx5_0'], 2, 'there is no fault prt-down; did you mean port-down?', REMEDY],
    [['port-down', 'mlx5_9'], 2, 'there is no device mlx5_9; did you mean mlx5_0?', REMEDY],
    [['port-down'], 2, 'the fault port-down needs a device: mlx5_0, 0040:10:00.0', REMEDY],
    [['clear', 'mlx5_8'], 2, 'there is no fault and no device mlx5_8; did you mean mlx5_0?', REMEDY],
    [['--demo=x'], 2, 'flag --demo: must be a process id', expect.stringContaining('Correct the command line')],
    [['clear', '--demo=1'], 1, 'no demo runs with the process id 1', expect.stringContaining('Start "device-agent demo"')],
    [['--sim.pods=3'], 2, 'unknown flag --sim.pods', expect.stringContaining('demo fault --help')],
    [['clear', 'a', 'b'], 2, expect.stringContaining('too many arguments'), expect.stringContaining('--help')],
  ])('says of %j what is wrong', async (words, status, message, remedy) => {
    const { stderr, stdout, ...rest } = await command(...words);
    const [first = '', ...others] = stderr.replace('device-agent: ', '').split('\n');
    expect([rest.status, stdout, first, others.join('\n')]).toEqual([status, '', message, remedy]);
  });

  it('corrects the name of the command', async () => {
    const { status, stderr } = await run(['demo', 'falt'], { TMPDIR: directory });
    expect([status, stderr.split('\n')[0]]).toEqual([2, 'device-agent: unknown command "device-agent demo falt"; did you mean fault?']);
  });
});

describe('the control socket', () => {
  it('is open to the user of the demo only', () => {
    expect(statSync(join(root, 'control.sock')).mode & 0o777).toBe(0o600);
    expect(statSync(join(root, 'demo.json')).mode & 0o777).toBe(0o600);
    expect(statSync(root).mode & 0o777).toBe(0o700);
  });

  it.each([
    ['no JSON', 'hello\n'],
    ['null', 'null\n'],
    ['another request', '{"do":"stop"}\n'],
    ['a name that is no text', '{"do":"begin","name":{}}\n'],
    ['a device that is no text', '{"do":"begin","name":"hot","device":[1]}\n'],
  ])('refuses %s', async (_what, text) => {
    expect(JSON.parse(await send(text))).toEqual({ refused: expect.stringContaining('does not know this request') });
  });

  it('closes on a request without end, and answers the next one', async () => {
    expect(await send('x'.repeat(100_000))).toBe('');
    expect((await command()).status).toBe(0);
  });
});

describe('several demos', () => {
  it('are told apart: the newest is asked, or the one of the terminal or of the process id; one that was killed is passed over', async () => {
    const second = await start();
    await second.until('a welcome', () => second.log().includes('Ctrl-C'));
    const left = nodeOf(second);
    try {
      expect((await command()).stdout).toContain(`demo ${second.child.pid} at`);
      expect((await command(`--demo=${demo.child.pid}`)).stdout).toContain(`demo ${demo.child.pid} at`);
      expect((await command('clear', `--demo=${demo.child.pid}`)).stdout).toBe('No fault was running.\n');
      const led = Object.fromEntries(
        [...readFileSync(join(root, 'env'), 'utf8').matchAll(/^export (\w+)='?(.*?)'?$/gm)].map(([, name = '', value]) => [name, value]),
      );
      expect(led, 'the lines of the file').toHaveProperty('DEVICE_AGENT_PATH_SYSFS');
      expect((await run(['demo', 'fault'], { TMPDIR: directory, ...led })).stdout).toContain(`demo ${demo.child.pid} at`);
    } finally {
      await second.stop('SIGKILL');
    }
    expect(existsSync(join(left, 'demo.json'))).toBe(true);
    expect((await command()).stdout).toContain(`demo ${demo.child.pid} at`);
    for (const [name, text] of [
      ['device-agent-node-broken', '{'],
      ['device-agent-node-strange', '{"pid":"1","address":3}'],
    ] as const) {
      mkdirSync(join(directory, name));
      writeFileSync(join(directory, name, 'demo.json'), text);
    }
    expect((await command()).stdout).toContain(`demo ${demo.child.pid} at`);
    for (const name of ['device-agent-node-broken', 'device-agent-node-strange']) rmSync(join(directory, name), { recursive: true });
    rmSync(left, { recursive: true });
  });

  it('are looked for below TMPDIR', async () => {
    const none = { TMPDIR: join(directory, 'none') };
    const { status, stdout, stderr } = await run(['demo', 'fault'], none);
    expect([status, stdout, stderr.split('\n')[0]]).toEqual([1, '', 'device-agent: no demo runs']);
  });
});
