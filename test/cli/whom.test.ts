import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openStream } from '../../src/cli/agent-api.ts';
import type { Configuration } from '../../src/config/configuration.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { run } from './command-line.ts';
import { toldBoard, toldDevice } from './publish/on-clock.ts';

let folder: string;
let own: readonly string[];
let impostor: Server;
let asked: string[];
let agent: ServedAgent | undefined;

const BOARD = toldBoard([toldDevice('GPU-x', 'healthy')]);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-whom-'));
  for (const name of ['sys', 'proc', 'dev', 'state']) mkdirSync(join(folder, name));
  own = [
    ...['sysfs', 'procfs', 'dev'].map((name) => `--path.${name}=${folder}/${name === 'dev' ? name : name.slice(0, -2)}`),
    `--podresources.socket=${folder}/none.sock`,
    '--podresources.checkpoint=',
    ...Object.keys(familyLoaders).map((family) => `--no-probe.${family}`),
  ];
  asked = [];
  impostor = createServer(({ url = '' }, response) => {
    asked.push(url);
    response.setHeader('content-type', 'application/json').setHeader('device-agent', 'node="here", pid=1, started=@1');
    response.end(JSON.stringify({ ...BOARD, allocations: [], probes: [] }));
  });
});
afterEach(async () => {
  await agent?.stop('SIGKILL');
  agent = undefined;
  impostor.close();
  impostor.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
});

const listening = async (place?: string): Promise<string> => {
  await new Promise<void>(
    (resolve) => void (place === undefined ? impostor.listen(0, '127.0.0.1', resolve) : impostor.listen(place, resolve)),
  );
  return place ?? `127.0.0.1:${(impostor.address() as AddressInfo).port}`;
};
/** The address is configured, as on a node: it is no word of the person who runs the command. */
const at = (address: string) => ({
  DEVICE_AGENT_WEB_LISTEN_ADDRESS: address,
  DEVICE_AGENT_STATE_FILE: join(folder, 'state/health.json'),
});

describe('with a state directory', () => {
  it.each([
    ['health'],
    ['health', '--npd', 'DevicesUnhealthy'],
    ['list'],
    ['list', '-o', 'prom'],
    ['usage'],
    ['incidents'],
    ['explain', 'a/b'],
  ])('%s %s %s asks nobody at the port when the agent is away', async (...words) => {
    const { stdout } = await run([...words, ...(words.includes('--npd') ? [] : own)], at(await listening()));
    expect([asked, stdout.includes('GPU-x'), stdout.includes('1 of 1')]).toEqual([[], false, false]);
  });

  it('the publisher follows nobody at the port when the agent is away', async () => {
    const address = await listening();
    const values = { section: () => ({ file: join(folder, 'state/health.json') }), setting: () => ({ value: address }) };
    const configuration = values as unknown as Configuration;
    expect(await openStream({ configuration, flags: new Map() }, '/api/health/watch')).toEqual({});
    expect(asked).toEqual([]);
  });

  it.each([
    ['others can write to it', () => chmodSync(join(folder, 'state'), 0o777), 'state can be written by others'],
    ...(process.getuid?.() === 0
      ? [['it belongs to another user', () => chownSync(join(folder, 'state'), 65_534, 65_534), 'state belongs to user 65534'] as const]
      : []),
  ] as const)('its socket is not asked when %s', async (_name, weaken, problem) => {
    await listening(join(folder, 'state/control.sock'));
    weaken();
    const health = await run(['health', ...own], at('127.0.0.1:1'));
    expect([health.status, health.stderr]).toEqual([2, expect.stringContaining(problem)]);
    expect((await run(['health', 'accept', 'GPU-x', '--why', 'x'], at('127.0.0.1:1'))).stderr).toContain(problem);
    expect(asked).toEqual([]);
    const doctor = await run(['doctor', ...own], at('127.0.0.1:1'));
    expect(doctor.stdout).toMatch(new RegExp(`FINDING +state-file +\\S+ can be changed by others: ${problem}`));
  });

  it.skipIf(process.getuid?.() !== 0)('a socket of another user is not asked', async () => {
    const path = join(folder, 'state/control.sock');
    await listening(path);
    chownSync(path, 65_534, 65_534);
    const health = await run(['health', ...own], at('127.0.0.1:1'));
    expect([health.status, health.stderr, asked]).toEqual([2, expect.stringContaining('it belongs to user 65534'), []]);
  });

  it('an agent keeps no state and no socket in a directory of others, and says so', async () => {
    chmodSync(join(folder, 'state'), 0o777);
    agent = await serve([...own, `--state.file=${folder}/state/health.json`, '--refresh.interval=200ms']);
    const page = await agent.until('a snapshot', (text) => seriesValue(text, 'device_agent_snapshot_timestamp_seconds') !== undefined);
    expect(seriesValue(page, 'device_agent_socket_up', { socket: 'control' })).toBe(0);
    expect(agent.log()).toContain('state can be written by others');
    expect(await agent.stop()).toBe(0);
    expect(readdirSync(join(folder, 'state'))).toEqual([]);
  });
});

describe('by an address', () => {
  it('a command says which agent it asked', async () => {
    agent = await serve([...own, '--state.file=', '--refresh.interval=200ms']);
    await agent.until('a snapshot', (text) => seriesValue(text, 'device_agent_snapshot_timestamp_seconds') !== undefined);
    const address = new URL(agent.url).host;
    const { stderr } = await run(['list', `--web.listen-address=${address}`], { NODE_NAME: 'gpu-1' });
    expect(stderr).toMatch(new RegExp(`^asked the agent at ${address}: node="[^"]+", pid=${agent.child.pid}, started=@\\d{10}$`, 'm'));
  });

  it('flags that only another agent could have are an error, and not left out', async () => {
    const address = await listening();
    const { status, stdout, stderr } = await run(['list', '-o', 'prom', `--web.listen-address=${address}`, ...own]);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(
      /does not use these flags: --path\.sysfs, .*--podresources\.socket[\s\S]*Leave them out\. A command that has --read /,
    );
  });
});

it('flags that differ from those of the agent at the socket are an error; the same ones are none', async () => {
  const state = `--state.file=${folder}/state/health.json`;
  agent = await serve([...own, state, '--refresh.interval=200ms']);
  await agent.until('a snapshot', (text) => seriesValue(text, 'device_agent_snapshot_timestamp_seconds') !== undefined);
  expect((await run(['list', ...own, state])).status).toBe(0);
  const { status, stderr } = await run(['list', '--path.sysfs=/elsewhere', state]);
  expect([status, stderr]).toEqual([2, expect.stringContaining('does not use these flags: --path.sysfs')]);
  expect((await run(['list', '--read', '--path.sysfs=/elsewhere', state])).stderr).not.toContain('these flags');
});

it('config print tells what the agent uses, what waits for its next start, and with --read what a start would use', async () => {
  const file = join(folder, 'agent.yaml');
  const write = (after: string, interval: string): void =>
    writeFileSync(file, `usage:\n  idle-after: ${after}\nrefresh:\n  interval: ${interval}\n`);
  write('7m', '300ms');
  const where = [`--config.file=${file}`, `--state.file=${folder}/state/health.json`];
  agent = await serve([...own, ...where]);
  await agent.until('a snapshot', (text) => seriesValue(text, 'device_agent_snapshot_timestamp_seconds') !== undefined);
  const print = (...words: readonly string[]) =>
    run(['config', 'print', ...words], { DEVICE_AGENT_CONFIG_FILE: file, DEVICE_AGENT_STATE_FILE: `${folder}/state/health.json` });
  write('9m', '400ms');
  agent.child.kill('SIGHUP');
  await expect.poll(async () => (await print()).stdout, { interval: 200 }).toContain('interval: 400ms');
  const { stdout, stderr } = await print();
  expect(stderr).toBe('in use by the running agent\n');
  expect(stdout).toContain('idle-after: 7m');
  expect(stdout).toMatch(/^# Other values in the file take effect at the next start of the agent: usage\.idle-after$/m);
  const ofStart = await print('--read');
  expect([ofStart.stderr, ofStart.stdout.includes('idle-after: 9m')]).toEqual(['', true]);
});
