import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { TreeWriter } from '../../src/sim/tree-writer.ts';
import { hardwareOf } from '../support/hardware.ts';
import { removeAsKernel } from '../support/kernel-files.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';

const COUNTER = 'sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data';

let root: string;
let agent: ServedAgent | undefined;

const flags = (timeout = '500ms', staleAfter = '1500ms'): string[] => [
  `--path.sysfs=${root}/sys`,
  `--path.procfs=${root}/proc`,
  `--path.dev=${root}/dev`,
  `--podresources.socket=${root}/absent.sock`,
  '--podresources.checkpoint=',
  '--state.file=',
  '--refresh.interval=200ms',
  `--refresh.timeout=${timeout}`,
  `--refresh.stale-after=${staleAfter}`,
];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-hang-'));
  makeHcas(2);
});

/** In place of those that are there. */
function makeHcas(hcas: number): void {
  rmSync(join(root, 'sys'), { recursive: true, force: true });
  const hardware = hardwareOf(infiniband, { infiniband: hcas });
  new TreeWriter(root).apply(hardware);
}

afterEach(async () => {
  await agent?.stop('SIGKILL');
  rmSync(root, { recursive: true, force: true });
});

describe('a counter file that never answers', () => {
  it('costs its device, not the family, the scrape or the exit', async () => {
    unlinkSync(join(root, COUNTER));
    execFileSync('mkfifo', [join(root, COUNTER)]);
    agent = await serve(flags());
    await agent.until('the hang is noticed', (page) => seriesValue(page, 'device_agent_probe_hung', { family: 'infiniband' }) === 1);
    const page = await agent.until(
      'the other device is read on',
      (text) => seriesValue(text, 'device_received_bytes_total', { device: 'mlx5_1' }) !== undefined,
    );
    expect(seriesValue(page, 'device_received_bytes_total', { device: 'mlx5_0' })).toBeUndefined();
    expect(seriesValue(page, 'device_agent_problems', { family: 'infiniband', code: 'probe-hung' })).toBe(1);
    const first = seriesValue(page, 'device_agent_probe_runs_total', { family: 'infiniband' }) ?? 0;
    await agent.until(
      'runs go on',
      (text) => (seriesValue(text, 'device_agent_probe_runs_total', { family: 'infiniband' }) ?? 0) > first + 2,
    );
    // On a busy machine a thread may also need longer to start than it is given here, which is said too.
    expect(agent.log().match(/probe-hung.*mlx5_0/g), 'said once').toHaveLength(1);
    expect(await agent.stop(), 'exit status in spite of a thread stuck in the kernel').toBe(0);
  });

  it('costs its device and one reader, however many devices have one, and the others are read', async () => {
    const hcas = 12;
    makeHcas(hcas);
    const counter = (n: number): string => join(root, COUNTER.replace('mlx5_0', `mlx5_${n}`));
    const hung = [0, 3, 4, 5, 7, 9, 11];
    for (const n of hung) unlinkSync(counter(n));
    execFileSync('mkfifo', hung.map(counter));
    // A whole second for each read, and enough for all that hang. A busy machine takes seconds more for each of them.
    agent = await serve(flags('60s', '90s'));
    const isRead = (page: string, n: number): boolean =>
      seriesValue(page, 'device_received_bytes_total', { device: `mlx5_${n}` }) !== undefined;
    const page = await agent.until(
      'all that hang are named, and others are read',
      (text) => seriesValue(text, 'device_agent_problems', { family: 'infiniband', code: 'probe-hung' }) === hung.length && isRead(text, 1),
    );
    expect(Array.from({ length: hcas }, (_, n) => n).filter((n) => !isRead(page, n))).toEqual(hung);
    expect(seriesValue(page, 'device_agent_probe_abandoned_runs_total', { family: 'infiniband' })).toBeGreaterThanOrEqual(hung.length);
    expect(await agent.stop()).toBe(0);
  });

  it('is read again once it answers', async () => {
    const fifo = join(root, COUNTER);
    unlinkSync(fifo);
    execFileSync('mkfifo', [fifo]);
    agent = await serve(flags());
    await agent.until('the hang is noticed', (page) => seriesValue(page, 'device_agent_probe_hung', { family: 'infiniband' }) === 1);
    // The stuck read ends with this writer. A plain file is in its place before that: nobody can hang on it again.
    const writer = openSync(fifo, 'w');
    writeFileSync(`${fifo}.new`, '1000\n');
    renameSync(`${fifo}.new`, fifo);
    closeSync(writer);
    const page = await agent.until(
      'the device is back',
      (text) => seriesValue(text, 'device_received_bytes_total', { device: 'mlx5_0' }) !== undefined,
    );
    expect(seriesValue(page, 'device_received_bytes_total', { device: 'mlx5_0' })).toBe(4_000);
    await agent.until('nothing hangs any more', (text) => seriesValue(text, 'device_agent_probe_hung', { family: 'infiniband' }) === 0);
    expect(await agent.stop()).toBe(0);
  });

  it('makes a device that was seen before unknown, not healthy and not missing', async () => {
    agent = await serve(flags());
    await agent.until('both devices', (page) => seriesValue(page, 'device_present', { device: 'mlx5_0' }) === 1);
    removeAsKernel(join(root, COUNTER));
    execFileSync('mkfifo', [join(root, COUNTER)]);
    const isUnknown = (text: string, device: string): boolean => seriesValue(text, 'device_health', { device, state: 'unknown' }) === 1;
    // On a busy machine the new thread may need longer than a reading may be old.
    const page = await agent.until('unknown alone', (text) => isUnknown(text, 'mlx5_0') && !isUnknown(text, 'mlx5_1'));
    expect(seriesValue(page, 'device_healthy', { device: 'mlx5_0' })).toBeUndefined();
    expect(seriesValue(page, 'device_info', { device: 'mlx5_0' })).toBe(1);
    expect(seriesValue(page, 'device_received_bytes_total', { device: 'mlx5_0' })).toBeUndefined();
    expect(await agent.stop()).toBe(0);
  });
});
