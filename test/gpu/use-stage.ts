import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { SimulatedKubelet } from '../../src/sim/kubelet/kubelet.ts';
import type { Agent } from './agent.ts';
import { type Ground, pause, startAgent } from './ground.ts';
import type { Page } from './page.ts';
import { held, type Line, notOffered } from './report.ts';
import { kubeletOptions, type Placed, placeInPod } from './workload.ts';

const SECTION = 'what loads use';
export const RESOURCE = 'nvidia.com/gpu';
export const NAMESPACE = 'proof';
const LOOK_MS = 500;
export const uidOf = (pod: string): string => `6f0e8f3a-5f1b-4c56-9d2e-${Buffer.from(pod.padEnd(6)).toString('hex')}`;

/**
 * Real loads on the first GPU: steps of training, FP32 in registers, a spin, a load of known duty, and clients of an MPS server. `lab` is a
 * folder with `work`, the compiled program of loads, and `job.py`, which needs PyTorch.
 */
export async function useStage(ground: Ground): Promise<readonly Line[]> {
  const { lab } = ground;
  if (lab === undefined) return [notOffered(SECTION, 'loads', 'no folder with the programs of loads: --lab')];
  return [...(await oneHolder(ground, lab)), ...(await mpsClients(ground, lab))];
}

/** A program in the cgroup of a pod, with what it printed. */
export class Program {
  readonly #child: ChildProcess;
  readonly #placed: Placed;
  said = '';

  constructor(ground: Ground, pod: string, words: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const [name = '', ...rest] = words;
    this.#child = spawn(name, rest, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, PYTHONUNBUFFERED: '1', ...env } });
    this.#child.stdout?.on('data', (chunk: Buffer) => {
      this.said += chunk.toString();
    });
    this.#placed = placeInPod(ground, this.#child.pid as number, uidOf(pod));
  }

  /** Options with which the agent sees the process in its pod. */
  get options(): readonly string[] {
    return this.#placed.options;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async until(word: string, timeoutMs: number): Promise<void> {
    for (const endMs = Date.now() + timeoutMs; !this.said.includes(word); await pause(50))
      if (this.hasEnded || Date.now() > endMs) throw new Error(`the load did not say ${word}: ${this.said.slice(-300)}`);
  }

  async end(): Promise<void> {
    const exited = once(this.#child, 'exit');
    if (!this.hasEnded) {
      this.#child.kill('SIGKILL');
      await exited;
    }
    await pause(200);
    try {
      this.#placed.remove();
    } catch {
      // Another pod is still in a folder above it.
    }
  }
}

export async function kubeletWithPods({ folder }: Ground, gpu: string, pods: readonly string[]): Promise<SimulatedKubelet> {
  const directory = join(folder, `kubelet-${pods.join('-')}`);
  const kubelet = new SimulatedKubelet({ directory });
  for (const part of ['pod-resources', 'device-plugins']) mkdirSync(join(directory, part), { recursive: true });
  await kubelet.start();
  const ids = pods.map((pod, at) => ({ pod, id: pods.length === 1 ? gpu : `${gpu}::${at}` }));
  kubelet.setStock({ devices: ids.map(({ id }) => ({ resource: RESOURCE, id })), cpus: [], memory: [] });
  for (const { pod, id } of ids)
    kubelet.admitPod({
      ...{ namespace: NAMESPACE, name: pod, uid: uidOf(pod) },
      containers: [{ name: 'cuda', devices: [{ resource: RESOURCE, id }] }],
    });
  return kubelet;
}

/** Looks at the page until `isOver`, and returns all pages. */
async function pagesUntil(agent: Agent, isOver: () => boolean, timeoutMs: number): Promise<readonly Page[]> {
  const pages: Page[] = [];
  for (const endMs = Date.now() + timeoutMs; Date.now() < endMs && !isOver(); await pause(LOOK_MS)) pages.push(await agent.page());
  return pages;
}

const STALL = ['--stall.after=30s', '--stall.learn=30s', '--stall.sample=1s', '--refresh.interval=2s'];
const share = (value: number | undefined): string => (value === undefined ? 'absent' : value.toFixed(4));

/** One pod that trains, computes in FP32, spins, and then works 40 % of the time. The intervals of the probe are the defaults. */
async function oneHolder(ground: Ground, lab: string): Promise<readonly Line[]> {
  const [gpu = ''] = ground.uuids;
  const pod = 'job';
  const lines: Line[] = [];
  const line = (what: string, expected: string, told: string, isHeld: boolean): void => {
    lines.push(held(SECTION, what, expected, told, isHeld, gpu));
  };
  const activity = (page: Page, unit: string): number | undefined => page.value('device_nvidia_activity_ratio', { device: gpu, unit });
  const waiting = (page: Page): number | undefined => page.value('container_device_waiting', { pod });
  const most = (pages: readonly Page[], unit: string): number | undefined => {
    const read = pages.map((page) => activity(page, unit)).filter((value) => value !== undefined);
    return read.length === 0 ? undefined : Math.max(...read);
  };
  const seen = (name: string, pages: readonly Page[]): void => {
    const units = ['tensor', 'fp16', 'fp32', 'fp64', 'integer', 'sm'].map((unit) => `${unit} ${share(most(pages, unit))}`);
    const watts = Math.max(...pages.map((page) => page.value('device_power_watts', { device: gpu, sensor: 'gpu' }) ?? 0));
    const text = `${units.join(', ')}, memory ${share(pages.at(-1)?.value('device_nvidia_memory_bandwidth_ratio', { device: gpu }))}, ${watts} W`;
    lines.push({ section: SECTION, what: `highest activity: ${name}`, expected: '', agent: text, verdict: 'measured', gpu });
  };
  const job = (...words: readonly string[]): Program =>
    new Program(ground, pod, ['python3', join(lab, 'job.py'), 'phases', ...words], { WDIR: lab });
  const kubelet = await kubeletWithPods(ground, gpu, [pod]);
  let load = job('40', 'fp32', '40');
  try {
    await load.until('work', 60_000);
    const agent = await startAgent(ground, [...kubeletOptions(kubelet), ...load.options, ...STALL], false);
    try {
      const working = await pagesUntil(agent, () => load.said.includes('child'), 60_000);
      const first = working.map((page) => activity(page, 'tensor')).find((value) => value !== undefined);
      line('first activity of tensor units while they work', 'above 0.1', share(first), first !== undefined && first > 0.1);
      // The last mean of the training is of before the child.
      await pause(4_000);
      const computing = await pagesUntil(agent, () => load.said.includes('child ended'), 60_000);
      seen('FP32 in registers', computing);
      const alarms = computing.filter((page) => waiting(page) === 1).length;
      line(
        'waiting while it computes in FP32',
        'never',
        `in ${alarms} of ${computing.length} looks`,
        alarms === 0 && computing.length > 20,
      );
      await load.until('end', 30_000);
      await load.end();

      load = job('8', 'spin', '52');
      await load.until('child', 60_000);
      const fromMs = Date.now();
      const spinning = await pagesUntil(agent, () => load.said.includes('child ended'), 70_000);
      seen('24 blocks that spin', spinning.slice(10));
      const at = spinning.findIndex((page) => waiting(page) === 1);
      const seconds = at < 0 ? undefined : ((at + 1) * (Date.now() - fromMs)) / spinning.length / 1_000;
      line(
        'waiting while it spins',
        'within 50 s',
        seconds === undefined ? 'never' : `after about ${seconds.toFixed(0)} s`,
        seconds !== undefined,
      );
      const stalled = (await agent.device(gpu))?.health.conditions.map(({ type }) => type).join(', ') ?? '';
      lines.push({ section: SECTION, what: 'conditions while it spins', expected: '', agent: stalled, verdict: 'measured', gpu });
      const ended = await pagesUntil(agent, () => false, 16_000);
      line(
        'waiting 16 s after the spin',
        '0',
        String(ended.at(-1) && waiting(ended.at(-1) as Page)),
        ended.length > 0 && waiting(ended.at(-1) as Page) === 0,
      );
      await load.end();

      load = new Program(ground, pod, [join(lab, 'work'), 'load', '512', '40', '25']);
      await load.until('ready', 30_000);
      const busy = (page: Page): number => page.value('container_device_busy_seconds_total', { pod, engine: 'gpu' }) ?? Number.NaN;
      const before = busy(await agent.page());
      await pagesUntil(agent, () => load.hasEnded, 40_000);
      await pause(4_000);
      const grown = busy(await agent.page()) - before;
      const kernels = Number(/kernels (\d+)/.exec(load.said)?.[1] ?? Number.NaN);
      const truth = kernels * 0.02;
      line(
        'busy seconds of a load of 40 %',
        `${truth.toFixed(1)} s by the program, within a fifth`,
        `${grown.toFixed(1)} s`,
        Math.abs(grown - truth) < truth / 5 + 0.5,
      );
    } finally {
      await agent.stop();
    }
  } finally {
    await load.end();
    await kubelet.stop();
  }
  return lines;
}

/** Two pods whose processes are clients of one MPS server. */
async function mpsClients(ground: Ground, lab: string): Promise<readonly Line[]> {
  const [gpu = ''] = ground.uuids;
  const env = { CUDA_MPS_PIPE_DIRECTORY: join(ground.folder, 'mps'), CUDA_MPS_LOG_DIRECTORY: join(ground.folder, 'mps-log') };
  for (const folder of Object.values(env)) mkdirSync(folder);
  const control = ['/usr/bin', '/usr/local/nvidia/bin', '/usr/local/bin']
    .map((folder) => join(folder, 'nvidia-cuda-mps-control'))
    .find(existsSync);
  if (control === undefined) return [notOffered(SECTION, 'clients of MPS', 'there is no nvidia-cuda-mps-control')];
  const options = { env: { ...process.env, ...env }, timeout: 20_000 };
  execFileSync(control, ['-d'], { ...options, stdio: 'ignore' });
  const pods = ['a', 'b'];
  const kubelet = await kubeletWithPods(ground, gpu, pods);
  const clients = pods.map((pod) => new Program(ground, pod, [join(lab, 'work'), 'load', '512', '60', '40'], env));
  try {
    for (const client of clients) await client.until('ready', 30_000);
    const agent = await startAgent(ground, [
      ...kubeletOptions(kubelet),
      ...clients.flatMap((client) => client.options),
      '--refresh.interval=2s',
    ]);
    try {
      const pages = (await pagesUntil(agent, () => false, 14_000)).slice(8);
      const last = pages.at(-1) as Page;
      const line = (what: string, expected: string, told: unknown, isHeld: boolean): Line =>
        held(SECTION, what, expected, String(told), isHeld, gpu);
      const count = last.value('device_nvidia_mps_clients', { device: gpu });
      const busy = last.value('device_utilization_ratio', { device: gpu, engine: 'gpu' });
      return [
        line('clients of MPS', '2', count, count === 2),
        line('GPU busy under MPS', 'above 0.3', busy, (busy ?? 0) > 0.3),
        ...pods.flatMap((pod) => {
          const shares = pages.map((page) => page.value('container_device_utilization_ratio', { pod, engine: 'gpu' }));
          const memory = last.value('container_device_memory_used_bytes', { pod });
          const idle = last.value('container_device_idle_seconds_total', { pod });
          return [
            line(
              `utilization of client ${pod}`,
              'absent',
              shares.join(' '),
              shares.every((value) => value === undefined),
            ),
            line(`memory of client ${pod}`, 'at least 512 MiB', memory, (memory ?? 0) >= 512 * 2 ** 20),
            line(`idle seconds of client ${pod}`, '0 or absent', idle, (idle ?? 0) === 0),
          ];
        }),
      ];
    } finally {
      await agent.stop();
    }
  } finally {
    for (const client of clients) await client.end();
    await kubelet.stop();
    execFileSync(control, { ...options, input: 'quit\n', stdio: ['pipe', 'ignore', 'ignore'] });
  }
}
