import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GpuNode } from '../e2e/gpu-node.ts';
import { goClient, pythonClient, RunningClient, type StockClient } from './support/stock-plugins.ts';

const WAIT = { interval: 50 };
const AMD = ['0020:10:00.0', '0020:11:00.0'] as const;
const INTEL = ['0030:10:00.0', '0030:11:00.0'] as const;
/** The plugin of ROCm has a fixed path. A file system of its own gives it that path, without a trace on this machine. */
const ROCM = '/var/lib/amd-metrics-exporter';
const ELSEWHERE = `mount -t tmpfs none /var/lib && mkdir ${ROCM} && ln -s "$1" ${ROCM}/amdgpu_device_metrics_exporter_grpc.socket && shift && exec "$@"`;
const UNSHARE = ['unshare', ...(process.getuid?.() === 0 ? [] : ['--map-root-user']), '--mount', '--kill-child'];

let node: GpuNode;
let running: RunningClient | undefined;
beforeEach(() => {
  node = new GpuNode();
});
afterEach(async () => {
  await running?.stop();
  running = undefined;
  await node.stop();
});

function start(client: StockClient, ...more: readonly string[]): () => unknown {
  const started = new RunningClient(client, more);
  running = started;
  return () => started.told();
}

function mountsProblem(): string | undefined {
  try {
    execFileSync(UNSHARE[0] as string, [...UNSHARE.slice(1), 'mount', '-t', 'tmpfs', 'none', '/var/lib'], { stdio: 'pipe' });
    return undefined;
  } catch (error) {
    return `there can be no file system for it here: ${(error as Error).message.split('\n').at(-1)}`;
  }
}

describe('clients as they are published', () => {
  it('device plugin of ROCm: marks the card, and goes by its own check while there is no agent', async ({ skip }) => {
    const client = await goClient('rocm');
    if (client.missing !== undefined) return skip(`the client cannot be built: ${client.missing}`);
    const problem = mountsProblem();
    if (problem !== undefined) return skip(problem);
    await node.start();
    const words = [...UNSHARE, 'sh', '-c', ELSEWHERE, 'sh', node.socket('metricssvc'), ...client.words, ...AMD, 'unknown-to-us'];
    const told = start({ words });
    const own = 'by its own check';
    const well = { [AMD[0]]: 'Healthy', [AMD[1]]: 'Healthy', 'unknown-to-us': own };
    await expect.poll(told, WAIT).toEqual(well);
    node.heat(AMD[1]);
    await expect.poll(told, WAIT).toEqual({ ...well, [AMD[1]]: 'Unhealthy' });
    await node.agent?.stop();
    await expect.poll(told, WAIT).toEqual({ [AMD[0]]: own, [AMD[1]]: own, 'unknown-to-us': own });
    await node.start();
    await expect.poll(told, WAIT).toEqual({ ...well, [AMD[1]]: 'Unhealthy' });
    node.heat(AMD[1], false);
    await expect.poll(told, WAIT).toEqual(well);
  });

  it('GPU plugin of Intel: marks the card, and connects again when the agent comes back', async ({ skip }) => {
    const client = await goClient('intel');
    if (client.missing !== undefined) return skip(`the client cannot be built: ${client.missing}`);
    await node.start();
    const told = start(client, node.socket('xpumd'), ...INTEL, '0000:00:00.0');
    const well = { [INTEL[0]]: 'Healthy', [INTEL[1]]: 'Healthy', '0000:00:00.0': 'no data' };
    await expect.poll(told, WAIT).toEqual(well);
    node.heat(INTEL[0]);
    await expect.poll(told, WAIT).toEqual({ ...well, [INTEL[0]]: 'Unhealthy' });
    await node.agent?.stop();
    node.heat(INTEL[0], false);
    await node.start();
    await expect.poll(told, WAIT).toEqual(well);
    node.heat(INTEL[1]);
    await expect.poll(told, WAIT).toEqual({ ...well, [INTEL[1]]: 'Unhealthy' });
  });

  it('NVRx: fails the node with the reasons, and goes on while there is no agent', async ({ skip }) => {
    const client = pythonClient();
    if (client.missing !== undefined) return skip(client.missing);
    await node.start();
    const told = start(client, node.socket('nvhcd'));
    const well = { isWell: true, said: 'Node health check: success (fail_count=0)' };
    await expect.poll(told, WAIT).toEqual(well);
    node.heat(AMD[0]);
    await expect.poll(told, WAIT).toEqual({ isWell: false, said: expect.stringContaining(`amdgpu/${AMD[0]}: unhealthy`) });
    await node.agent?.stop();
    await expect.poll(told, WAIT).toEqual({ isWell: true, said: expect.stringContaining('treating as healthy (skip)') });
    node.heat(AMD[0], false);
    await node.start();
    await expect.poll(told, WAIT).toEqual(well);
  });
});
