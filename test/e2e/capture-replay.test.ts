import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { unpackCapture } from '../../src/capture/archive.ts';
import type { Capture } from '../../src/capture/frame.ts';
import { MAIN, type Ran, run } from '../cli/command-line.ts';
import { playCapture, replayContext } from '../support/captured.ts';
import { type ServedAgent, startAgent } from '../support/serve.ts';

const gpu = (index: number): string => `GPU-5e1f0000-0000-4000-8000-00000000000${index}`;
/** Each fault, its device, and the conditions that it must raise there. */
const FAULTS = [
  ['port-down', 'mlx5_0', ['PortDown']],
  ['ecc', gpu(2), ['RowRemapPending', 'UncorrectableEcc']],
  ['xid79', gpu(1), ['Xid', 'GpuLost']],
  ['nonfatal-error', '0010:21:00.0', ['NonfatalError']],
  ['stranger', gpu(3), ['HeldByStranger']],
] as const;
const CONDITIONS = FAULTS.flatMap(([, , conditions]) => conditions);
/** Conditions that wait before they count begin and end within the capture. */
const HEALTH = `
health:
  conditions:
${['infiniband.PortDown', 'fpga.NonfatalError', 'nvidia.HeldByStranger'].map((name) => `    ${name}: { for: 3s, recovery: 3s }\n`).join('')}
expect: { nvidia: 9 }
`;
const WAIT = { timeout: 60_000, interval: 200 };

let directory: string;
let demo: ServedAgent;
let file: string;
let told = '';
const seen = new Set<string>();

const demoCommand = (...words: string[]): Promise<Ran> => run(['demo', 'fault', ...words], { TMPDIR: directory });
const linesOf = (page: string, start: string): readonly string[] => page.split('\n').filter((line) => line.startsWith(start));
const holds = (page: string, condition: string): boolean =>
  linesOf(page, 'device_health_condition{').some((line) => line.includes(`condition="${condition}"`));
const valuesOf = (text: string, labels: string): readonly string[] =>
  [...text.matchAll(new RegExp(`[{,](?:${labels})="([^"]+)"`, 'g'))].map((match) => match[1] as string);

/** Remembers the names that the node has now. */
async function look(root: string): Promise<void> {
  const checkpoint = readFileSync(join(root, 'kubelet/device-plugins/kubelet_internal_checkpoint'), 'utf8');
  const uids = [...checkpoint.matchAll(/"PodUID":"([^"]+)"/g)].map((match) => match[1] as string);
  for (const name of [...valuesOf(await demo.metrics(), 'pod|uuid|serial|\\w*guid'), ...uids]) seen.add(name);
}

/** Captures the node of the demo while its faults begin and end. */
async function capture(root: string): Promise<number | null> {
  const config = join(directory, 'device-agent.yaml');
  writeFileSync(config, readFileSync(join(root, 'device-agent.yaml'), 'utf8') + HEALTH);
  const flags = [...new Set(demo.log().match(/--(?!config)[a-z]+\.[a-z.-]+=\/[^\s"\\]+/g))];
  const usage = ['--usage.zero-for=2s', '--usage.linger=5s'];
  const words = [
    'capture',
    '-o',
    file,
    '--for=1h',
    '--refresh.interval=1s',
    '--log.format=json',
    `--config.file=${config}`,
    ...usage,
    ...flags,
  ];
  const child: ChildProcess = spawn(process.execPath, [MAIN, ...words], { stdio: ['ignore', 'ignore', 'pipe'] });
  child.stderr?.on('data', (chunk: Buffer) => {
    told += chunk.toString();
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const are = (what: string): readonly string[] =>
    CONDITIONS.filter((condition) =>
      told.split('\n').some((line) => line.includes(`a condition was ${what}`) && line.includes(`"condition":"${condition}"`)),
    );
  try {
    // The first frame tells the number of GPUs.
    await vi.waitFor(() => expect(told).toContain('expected-missing'), WAIT);
    for (const [name, device] of FAULTS) expect(await demoCommand(name, device)).toMatchObject({ status: 0 });
    await look(root);
    await vi.waitFor(() => expect(are('raised')).toEqual(CONDITIONS), WAIT);
    expect(await demoCommand('clear')).toMatchObject({ status: 0 });
    await look(root);
    await vi.waitFor(() => expect(are('cleared')).toEqual(CONDITIONS), WAIT);
  } finally {
    child.kill('SIGINT');
  }
  return (await ended)[0];
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'capture-'));
  file = join(directory, 'node.tar.gz');
  demo = await startAgent([process.execPath, MAIN, 'demo', '--sim.story=off', '--sim.pod-change=4s'], {
    env: { ...process.env, TMPDIR: directory },
  });
  await demo.until('a welcome', () => demo.log().includes('Ctrl-C'));
  const root = join(directory, readdirSync(directory).find((name) => name.startsWith('device-agent-node-')) ?? 'none');
  expect(await capture(root), told.slice(-2_000)).toBe(0);
}, 180_000);
afterAll(async () => {
  await demo.stop('SIGINT');
  rmSync(directory, { recursive: true });
});

describe('a capture of the demo with faults', () => {
  let archive: Capture;
  beforeAll(() => {
    archive = unpackCapture(readFileSync(file));
  });

  it('has the begin and the end of each fault, its incident, totals of use, and what the agent tells of itself', () => {
    const pages = archive.frames.map(({ page }) => page);
    for (const condition of CONDITIONS) {
      const frames = pages.flatMap((page, index) => (holds(page, condition) ? [index] : []));
      expect([frames.length > 0, frames[0] !== 0, frames.at(-1) !== pages.length - 1], condition).toEqual([true, true, true]);
    }
    const last = pages.at(-1) ?? '';
    for (const series of [
      'device_incidents_total{',
      'device_allocated_seconds_total{',
      'container_device_idle_seconds_total{',
      'container_device_busy_seconds_total{',
      'container_device_memory_byte_seconds_total{',
      'device_unhealthy_seconds_total{',
      'device_agent_probe_runs_total{family="nvidia"}',
      'device_agent_problems{family="nvidia",code="expected-missing"} 1',
      'device_agent_kubelet_allocated_devices{',
      'device_agent_plugin_devices{resource="device-agent.dev/vf",state="healthy"} 4',
      'device_agent_node_info{node="host-',
      'device_agent_expected_devices{family="nvidia"} 9',
    ])
      expect(linesOf(last, series), series).not.toEqual([]);
    expect(
      pages.some((page) => linesOf(page, 'container_device_ended_timestamp_seconds{').length > 0),
      'a container ended',
    ).toBe(true);
  });

  it('replays to the same page at each moment', async () => {
    const { pages } = await playCapture(replayContext, archive);
    for (const condition of CONDITIONS)
      expect(
        pages.map((page) => holds(page, condition)),
        condition,
      ).toEqual(archive.frames.map(({ page }) => holds(page, condition)));
    expect(await run(['replay', file])).toMatchObject({ status: 0, stdout: `${archive.frames.length} frames, no difference\n` });
  }, 120_000);

  it('differs from a page in which one total is another one', async () => {
    const { stdout } = await run(['replay', file, '-o', 'prom']);
    const total = linesOf(stdout, 'device_allocated_seconds_total{device="mlx5_0"}')[0] as string;
    const other = total.replace(/[^ ]+$/, '1');
    const page = join(directory, 'page.prom');
    writeFileSync(page, stdout.replace(total, other));
    expect(await run(['replay', file, '--expect', page])).toMatchObject({ status: 1, stdout: `-${other}\n+${total}\n` });
    writeFileSync(page, stdout);
    expect((await run(['replay', file, '--expect', page])).status).toBe(0);
  }, 120_000);

  it('names no pod, board or UUID of the node, and its pods still hold its devices', () => {
    const names = [...seen];
    expect(names.length).toBeGreaterThan(30);
    const encoded = archive.frames.flatMap(({ requests, library }) => [
      ...requests.map(({ answer = '' }) => answer),
      ...library.flatMap(({ memory }) => memory.flatMap(({ before, after }) => [before, after])),
    ]);
    const bytes = [
      gunzipSync(readFileSync(file)).toString('latin1'),
      ...encoded.map((text) => Buffer.from(text, 'base64').toString('latin1')),
    ];
    expect(names.filter((name) => bytes.some((text) => text.includes(name)))).toEqual([]);
    for (const { page } of archive.frames) {
      const devices = new Set(valuesOf(linesOf(page, 'device_info{').join('\n'), 'device'));
      const held = linesOf(page, 'container_device_allocation{').map((line) => valuesOf(line, 'device')[0]);
      expect(held.length).toBeGreaterThan(5);
      // The serial port of the simulated node is a device that no family knows.
      expect(held.filter((device) => device === undefined || !devices.has(device))).toEqual([]);
    }
  });
});
