import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, it } from 'vitest';
import { family as nvidia } from '../../src/probes/nvidia/index.ts';
import { scriptedLibrary } from '../probes/nvidia/scripted-machine.ts';
import { hopper } from '../probes/nvidia/scripted-script.ts';
import { PROGRAM } from '../support/program.ts';
import { readersOf } from '../support/readers-of.ts';
import { repetitions } from '../support/repetitions.ts';
import { type ServedAgent, seriesValue } from '../support/serve.ts';
import { eventually } from '../support/until.ts';
import { ServedNode } from './served-node.ts';

const run = promisify(execFile);
const TURNS = repetitions(2, 8);
const UUID = hopper(0).values.uuid as string;

let node: ServedNode;
let library: ReturnType<typeof scriptedLibrary>;
let state: string;

async function start(): Promise<ServedAgent> {
  node = new ServedNode({
    family: nvidia,
    counts: {},
    resource: 'example.com/gpu',
    config: {},
    flags: ['--refresh.interval=200ms', '--refresh.timeout=6s'],
  });
  library = scriptedLibrary(node.root, { gpus: [hopper(0), hopper(1)] });
  writeFileSync(`${library.path}.script.device`, '');
  state = join(node.root, 'state/health.json');
  mkdirSync(join(node.root, 'proc/driver/nvidia/gpus/0000:3b:00.0'), { recursive: true });
  await node.kubelet.start();
  await node.manager.start();
  const flags = [
    `--state.file=${state}`,
    '--web.enable-lifecycle',
    '--probe.nvidia.source=nvml',
    `--probe.nvidia.nvml-library=${library.path}`,
  ];
  return await node.startAgent(flags);
}
afterEach(() => node.stop());

/** What the agent and its readers have open or mapped of the driver. */
function usedOf({ child }: ServedAgent): readonly string[] {
  const agent = child.pid as number;
  return [...new Set([agent, ...readersOf(agent)].flatMap(usedBy))].sort();
}

/** Nothing when the process has ended meanwhile. */
function usedBy(pid: number): readonly string[] {
  try {
    const links = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
      } catch {
        return [];
      }
    });
    const mapped = readFileSync(`/proc/${pid}/maps`, 'utf8')
      .split('\n')
      .map((line) => line.split(/\s+/)[5] ?? '');
    return [...links, ...mapped].filter((path) => path.includes(library.path));
  } catch {
    return [];
  }
}

const isReleased = (page: string): boolean =>
  seriesValue(page, 'device_health', { device: UUID, state: 'unknown' }) === 1 &&
  seriesValue(page, 'device_health_condition', { device: UUID, condition: 'DriverReleased', reason: 'Released' }) === 1;
const isRead = (page: string): boolean =>
  seriesValue(page, 'device_health', { device: UUID, state: 'healthy' }) === 1 &&
  seriesValue(page, 'device_temperature_celsius', { device: UUID }) !== undefined;
const command = (...words: string[]) => run(process.execPath, [PROGRAM, 'release', ...words, `--state.file=${state}`]);

it(`closes the driver on three ways, ${TURNS} times each, and opens it again`, async () => {
  const agent = await start();
  const both = [library.path, `${library.path}.script.device`];
  await agent.until('the GPUs', isRead);
  expect(usedOf(agent)).toEqual(both);
  for (let turn = 1; turn <= TURNS; turn += 1) {
    const { stdout } = await command('nvidia', '--for', '10m', '--why', 'driver 590');
    expect(stdout).toMatch(/^nvidia: closed until \d{4}-/);
    expect(usedOf(agent), `command ${turn}`).toEqual([]);
    const page = await agent.metrics();
    expect(isReleased(page)).toBe(true);
    expect(seriesValue(page, 'device_nvidia_driver_release_end_timestamp_seconds', { device: UUID })).toBeGreaterThan(Date.now() / 1_000);
    expect((await command('nvidia', '--end')).stdout).toBe('nvidia: the agent uses the driver again\n');
    expect(usedOf(agent)).toEqual(both);
    await agent.until('the GPUs again', isRead);

    const post = (time: string) => fetch(`${agent.url}/-/release?family=nvidia&for=${time}`, { method: 'POST' });
    expect(await (await post('10m')).text()).toMatch(/^closed until /);
    expect(usedOf(agent), `request ${turn}`).toEqual([]);
    expect(isReleased(await agent.metrics())).toBe(true);
    expect(await (await post('0s')).text()).toBe('open.\n');
    await agent.until('the GPUs again', isRead);

    library.write({ lines: [`system_event = ${turn} 1`], gpus: [hopper(0), hopper(1)] });
    await agent.until('the release for the driver', isReleased);
    expect(usedOf(agent), `driver ${turn}`).toEqual([]);
    // The driver is loaded again: its list has other GPUs than before.
    mkdirSync(join(node.root, `proc/driver/nvidia/gpus/0000:${(0x40 + turn).toString(16)}:00.0`));
    await agent.until('the GPUs again', isRead);
    // A GPU that the driver got meanwhile makes the agent open the library once more.
    await eventually(() => expect(usedOf(agent)).toEqual(both));
  }
});

it('opens the driver by itself when the time is over, refuses what it cannot do, and leaves a driver that hangs', async () => {
  const agent = await start();
  await agent.until('the GPUs', isRead);
  await command('nvidia', '--for', '1s');
  expect(usedOf(agent)).toEqual([]);
  await agent.until('the GPUs again', isRead);
  await expect(command('nvme', '--for', '1m')).rejects.toMatchObject({
    stderr: expect.stringContaining('nvme is no enabled device family'),
  });
  await expect(command('nvidia', '--for', '25h')).rejects.toMatchObject({ stderr: expect.stringContaining('24h at most') });
  await expect(command('nvidia', '--for', 'soon')).rejects.toMatchObject({ code: 2 });
  for (const [query, status] of [
    ['family=nvidia', 400],
    ['family=nvme&for=1m', 409],
  ] as const)
    expect((await fetch(`${agent.url}/-/release?${query}`, { method: 'POST' })).status).toBe(status);
  expect((await fetch(`${agent.url}/-/release?family=nvidia&for=1m`)).status).toBe(405);
  const ofPage = await fetch(`${agent.url}/-/release?family=nvidia&for=1m`, { method: 'POST', headers: { Origin: agent.url } });
  expect(ofPage.status).toBe(403);

  library.write({ gpus: [hopper(0), { ...hopper(1), lines: ['hang.nvmlDeviceGetUtilizationRates = 1'] }] });
  // The reader whose call hangs is killed, so that nothing of it keeps the driver open.
  expect((await command('nvidia', '--for', '1m')).stdout).toMatch(/^nvidia: closed until /);
  expect(usedOf(agent)).toEqual([]);
});
