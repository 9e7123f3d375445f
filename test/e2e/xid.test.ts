import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { family as nvidia } from '../../src/probes/nvidia/index.ts';
import { PROGRAM } from '../support/program.ts';
import { seriesValue } from '../support/serve.ts';
import { ServedNode } from './served-node.ts';

const GPU = 'example.com/gpu';
const WAIT = { interval: 20 };

let node: ServedNode;
let sequence = 100;
const log = (): string => join(node.root, 'kernel.log');
const say = (text: string): void => appendFileSync(log(), `4,${sequence++},${sequence * 1_000_000},-;NVRM: ${text}\n`);
const addressOf = (gpu: number): string => `0008:${String(gpu + 1).padStart(2, '0')}:00`;

async function start(kmsg = log) {
  node = new ServedNode({
    family: nvidia,
    counts: { nvidia: 3 },
    resource: GPU,
    config: { plugin: { resources: [{ resource: GPU, select: { family: 'nvidia', kind: 'gpu' } }] } },
  });
  mkdirSync(join(node.root, 'proc'), { recursive: true });
  writeFileSync(join(node.root, 'proc/stat'), `btime ${Math.floor(Date.now() / 1_000) - 3_600}\n`);
  writeFileSync(log(), '');
  await node.kubelet.start();
  await node.manager.start();
  return await node.startAgent([`--path.kmsg=${kmsg()}`]);
}

afterEach(async () => {
  await node.stop();
});

describe('an Xid in the kernel log', () => {
  it('takes its GPU out at the kubelet, spares the others, and is taken back by the word of the driver', async () => {
    const agent = await start();
    await expect.poll(() => Object.values(node.list()), WAIT).toEqual(['Healthy', 'Healthy', 'Healthy']);
    const ids = Object.keys(node.list()).sort();

    say(`Xid (PCI:${addressOf(1)}): 119, pid=77, name=train, Timeout after 6s of waiting for RPC response from GPU1 GSP!`);
    await expect.poll(() => node.list(), WAIT).toMatchObject({ [ids[1] as string]: 'Unhealthy' });
    expect(node.list()).toEqual({ [ids[0] as string]: 'Healthy', [ids[1] as string]: 'Unhealthy', [ids[2] as string]: 'Healthy' });
    // The counter waits for the kubelet, which tells whom the fault hit.
    const isCounted = (text: string): boolean =>
      seriesValue(text, 'device_nvidia_xid_errors_total', { device: ids[1] as string, xid: '119' }) === 1;
    await agent.until('counted', isCounted);
    const page = await agent.metrics();
    expect(seriesValue(page, 'device_healthy', { device: ids[1] as string })).toBe(0);
    await expect
      .poll(() => node.events(), WAIT)
      .toEqual(
        expect.arrayContaining([
          expect.objectContaining({ transition: 'raised', condition: 'Xid', instance: '119', device: `nvidia/${ids[1]}` }),
        ]),
      );

    say(`Xid (PCI:${addressOf(1)}): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)`);
    await expect.poll(() => Object.values(node.list()), WAIT).toEqual(['Healthy', 'Healthy', 'Healthy']);
    expect(agent.child.exitCode, 'the process that began').toBeNull();
  });

  it('of an application leaves the GPU in', async () => {
    const agent = await start();
    await expect.poll(() => Object.values(node.list()), WAIT).toEqual(['Healthy', 'Healthy', 'Healthy']);
    for (const xid of [13, 31, 43, 45, 68, 69, 94]) say(`Xid (PCI:${addressOf(0)}): ${xid}, pid=1, name=app, some text`);
    await agent.until('all counted', (page) => seriesValue(page, 'device_nvidia_xid_errors_total', { xid: '94' }) === 1);
    const page = await agent.metrics();
    for (const xid of ['13', '31', '43', '45', '68', '69']) expect(seriesValue(page, 'device_nvidia_xid_errors_total', { xid })).toBe(1);
    expect(Object.values(node.list())).toEqual(['Healthy', 'Healthy', 'Healthy']);
    expect(
      node.lists.flatMap(({ devices }) => Object.values(devices)),
      'at no moment',
    ).not.toContain('Unhealthy');
  });
});

describe('an Xid in a log that a process of its own reads', () => {
  let reader: ChildProcess | undefined;
  const socket = (): string => join(node.root, 'kernel-log.sock');
  const startReader = (): void => {
    reader = spawn(process.execPath, [PROGRAM, 'kernel-log', `--socket=${socket()}`, `--path.kmsg=${log()}`], { stdio: 'ignore' });
  };
  const endReader = async (): Promise<void> => {
    if (reader === undefined) return;
    const exited = once(reader, 'exit');
    reader.kill('SIGKILL');
    await exited;
    reader = undefined;
  };
  afterEach(endReader);

  it('counts once over an end of that process, which leaves the fault and makes the log a check that is not made', async () => {
    const agent = await start(socket);
    const unchecked = (page: string, reason: string): boolean =>
      seriesValue(page, 'device_agent_checks_disabled', { family: 'nvidia', check: 'kernel-log', reason }) === 1;
    await agent.until('no reader', (page) => unchecked(page, 'kmsg-missing'));
    startReader();
    await agent.until('a reader', (page) => !page.includes('check="kernel-log"'));
    const ids = Object.keys(node.list()).sort();
    const count = (page: string, xid: string) => seriesValue(page, 'device_nvidia_xid_errors_total', { device: ids[1] as string, xid });

    say(`Xid (PCI:${addressOf(1)}): 119, pid=77, name=train, Timeout after 6s of waiting for RPC response from GPU1 GSP!`);
    await agent.until('counted', (page) => count(page, '119') === 1);
    await expect.poll(() => node.list()[ids[1] as string], WAIT).toBe('Unhealthy');

    await endReader();
    await agent.until('the end of the reader', (page) => unchecked(page, 'kmsg-failed'));
    expect(node.list()[ids[1] as string]).toBe('Unhealthy');
    say(`Xid (PCI:${addressOf(1)}): 31, pid=77, name=train, MMU Fault`);
    startReader();
    const page = await agent.until('counted, too', (text) => count(text, '31') === 1);
    expect(count(page, '119')).toBe(1);
    await agent.until('a reader again', (text) => !text.includes('check="kernel-log"'));
    expect(node.list()[ids[1] as string]).toBe('Unhealthy');
  });
});
