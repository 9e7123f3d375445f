import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { TreeWriter } from '../../src/sim/tree-writer.ts';
import { hardwareOf } from '../support/hardware.ts';
import { removeAsKernel } from '../support/kernel-files.ts';
import { PROGRAM } from '../support/program.ts';
import { readersOf } from '../support/readers-of.ts';
import { type ServedAgent, seriesValue, startAgent } from '../support/serve.ts';
import { unless } from '../support/skipped.ts';

const HCAS = 4;

let root: string;
let agent: ServedAgent | undefined;

const flags = (): string[] => [
  `--path.sysfs=${root}/sys`,
  `--path.procfs=${root}/proc`,
  `--path.dev=${root}/dev`,
  `--podresources.socket=${root}/absent.sock`,
  '--podresources.checkpoint=',
  '--state.file=',
  '--refresh.interval=100ms',
];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-shortcuts-'));
  writeTree(root, 1_000);
});

afterEach(async () => {
  await agent?.stop('SIGKILL');
  rmSync(root, { recursive: true, force: true });
});

function writeTree(place: string, elapsedMs: number): void {
  for (const folder of ['proc', 'dev']) mkdirSync(join(place, folder), { recursive: true });
  new TreeWriter(place).apply(hardwareOf(infiniband, { infiniband: HCAS }, elapsedMs));
}

const counter = (device: string, name: string): string => join(root, 'sys/class/infiniband', device, 'ports/1/counters', name);
const received = (page: string, device: string): number | undefined => seriesValue(page, 'device_received_bytes_total', { device });
const onDisk = (device: string): number => Number(readFileSync(counter(device, 'port_rcv_data'), 'utf8')) * 4;

/** The agent after several refreshes, when everything that can be kept is kept. */
async function settled(program: string = PROGRAM, wrapper: readonly string[] = []): Promise<ServedAgent> {
  agent = await startAgent([...wrapper, process.execPath, program, 'serve', ...flags()]);
  await agent.until('all devices', (page) => received(page, `mlx5_${HCAS - 1}`) === onDisk(`mlx5_${HCAS - 1}`));
  for (let times = 0; times < 3; times += 1) await nextPage(agent);
  return agent;
}

/** A page of which all was read after this moment. */
async function nextPage(running: ServedAgent): Promise<string> {
  const runs = (page: string): number => seriesValue(page, 'device_agent_probe_runs_total', { family: 'infiniband' }) ?? 0;
  const before = runs(await running.metrics());
  return running.until('two more refreshes', (page) => runs(page) >= before + 2);
}

/** The reader of all families that only read files. */
const readerOf = ({ child }: ServedAgent): number => readersOf(child.pid as number)[0] as number;

function openBelow(running: ServedAgent, directory: string): number {
  const reader = readerOf(running);
  return readdirSync(`/proc/${reader}/fd`).filter((fd) => linkOf(`/proc/${reader}/fd/${fd}`).startsWith(directory)).length;
}

const hasPrlimit = existsSync('/usr/bin/prlimit');
const noLimits = unless(hasPrlimit, 'no prlimit');
const MOST = 'unlimited';

/** The soft limit of open files of a running process; `MOST`: its hard limit. */
function limitDescriptors(pid: number, most: number | typeof MOST): void {
  const hard = (): string => /^Max open files\s+\d+\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1] ?? '';
  execFileSync('prlimit', ['--pid', `${pid}`, `--nofile=${most === MOST ? hard() : most}:`]);
}

/** A limit below which all descriptors are open, and none is of a file that could be closed to make room. */
function ownDescriptors(pid: number): number {
  const open = readdirSync(`/proc/${pid}/fd`)
    .map(Number)
    .sort((a, b) => a - b);
  const isOwn = (fd: number): boolean => open.includes(fd) && !linkOf(`/proc/${pid}/fd/${fd}`).startsWith(root);
  let limit = 0;
  while (isOwn(limit)) limit += 1;
  return limit;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // Closed since it was listed.
    return '';
  }
}

describe('files that are kept open', () => {
  it('follow counters that move', async () => {
    const running = await settled();
    expect(openBelow(running, root), 'the shortcut is taken').toBeGreaterThan(HCAS * 50);
    for (const words of [7, 2 ** 52, 3]) {
      writeFileSync(counter('mlx5_1', 'port_rcv_data'), `${words}\n`);
      expect(received(await nextPage(running), 'mlx5_1')).toBe(words * 4);
    }
  });

  it('are let go with a device that is removed', async () => {
    const running = await settled();
    const before = openBelow(running, root);
    unlinkSync(join(root, 'sys/class/infiniband/mlx5_1'));
    const page = await nextPage(running);
    expect(received(page, 'mlx5_1')).toBeUndefined();
    expect(seriesValue(page, 'device_present', { device: 'mlx5_1' })).toBe(0);
    expect(received(page, 'mlx5_2')).toBe(onDisk('mlx5_2'));
    expect(openBelow(running, root)).toBe((before / HCAS) * (HCAS - 1));
  });

  it('are those of the tree that is there, not of one that was replaced', async () => {
    const running = await settled();
    const other = `${root}-other`;
    writeTree(other, 9_000);
    renameSync(join(root, 'sys'), join(root, 'sys-old'));
    renameSync(join(other, 'sys'), join(root, 'sys'));
    rmSync(other, { recursive: true });
    const page = await nextPage(running);
    for (let n = 0; n < HCAS; n += 1) expect(received(page, `mlx5_${n}`)).toBe(onDisk(`mlx5_${n}`));
    expect(openBelow(running, join(root, 'sys-old'))).toBe(0);
  });

  it('are no counters any more once a directory takes their name', async () => {
    const running = await settled();
    removeAsKernel(counter('mlx5_0', 'port_rcv_data'));
    mkdirSync(counter('mlx5_0', 'port_rcv_data'));
    const page = await nextPage(running);
    expect(received(page, 'mlx5_0')).toBeUndefined();
    expect(seriesValue(page, 'device_infiniband_unreadable_files', { device: 'mlx5_0' })).toBe(1);
    expect(received(page, 'mlx5_1')).toBe(onDisk('mlx5_1'));
    rmSync(counter('mlx5_0', 'port_rcv_data'), { recursive: true });
    writeFileSync(counter('mlx5_0', 'port_rcv_data'), '11\n');
    expect(received(await nextPage(running), 'mlx5_0')).toBe(44);
  });

  it('are none in a reader with 128 descriptors, which reads the same', async () => {
    // Half of what the remedy asks for. The bundle, as it is shipped, takes some seventy to load its parts at once; some hundred modules take more.
    const running = await settled(PROGRAM, ['sh', '-c', 'ulimit -n 128 && exec "$@"', 'sh']);
    // A file that a read has open now is not kept.
    await expect.poll(() => openBelow(running, root)).toBe(0);
    writeFileSync(counter('mlx5_2', 'port_rcv_data'), '5\n');
    const page = await nextPage(running);
    expect(received(page, 'mlx5_2')).toBe(20);
    for (const n of [0, 1, 3]) expect(received(page, `mlx5_${n}`)).toBe(onDisk(`mlx5_${n}`));
    for (let n = 0; n < HCAS; n += 1) expect(seriesValue(page, 'device_infiniband_unreadable_files', { device: `mlx5_${n}` })).toBe(0);
  });

  it.skipIf(!hasPrlimit)(`give way when descriptors run out, and what is found meanwhile is found anew afterwards${noLimits}`, async () => {
    const running = await settled();
    const pid = readerOf(running);
    const seen = (code: string, page: string): number => seriesValue(page, 'device_agent_problems', { family: 'infiniband', code }) ?? 0;
    limitDescriptors(pid, ownDescriptors(pid));
    renameSync(join(root, 'sys/class/infiniband/mlx5_3'), join(root, 'sys/class/infiniband/mlx5_9'));
    // In the log, since it may last for a moment only: room that others leave is taken.
    await expect.poll(() => running.log()).toContain('"code":"descriptors-exhausted"');
    limitDescriptors(pid, MOST);
    const page = await running.until('the device is found in full', (text) => received(text, 'mlx5_9') === onDisk('mlx5_9'));
    expect(seen('descriptors-exhausted', page)).toBe(0);
    for (const device of ['mlx5_0', 'mlx5_1', 'mlx5_2']) expect(received(page, device)).toBe(onDisk(device));
  });

  it('are fewer, and all counters as right, where there is no room for all', async () => {
    const running = await settled(PROGRAM, ['sh', '-c', 'ulimit -n 600 && exec "$@"', 'sh']);
    const kept = openBelow(running, root);
    expect(kept).toBeGreaterThan(100);
    expect(kept).toBeLessThan(400);
    const page = await nextPage(running);
    for (let n = 0; n < HCAS; n += 1) expect(received(page, `mlx5_${n}`)).toBe(onDisk(`mlx5_${n}`));
  });
});
