import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { createChangeLog } from '../../src/log/changes.ts';
import { defaultValues } from '../../src/model/options.ts';
import { type PluginOptions, pluginOptions, type RegistrationChoice } from '../../src/plugin/options.ts';
import { createDevicePlugin, type DevicePlugin } from '../../src/plugin/plugin.ts';
import { deviceState, QUICK, TestStore, TOY, toyAccess, until } from './support.ts';

/** A program that runs the kubelet's own device manager and takes commands on standard input, one JSON line each in answer. */
const HARNESS = process.env.DEVICE_MANAGER_HARNESS ?? '';
if (!existsSync(HARNESS)) process.stderr.write('skipped: DEVICE_MANAGER_HARNESS names no device manager to test against\n');

type Answer = Readonly<Record<string, unknown>>;

/** The kubelet's device manager in a process of its own. */
class DeviceManager {
  readonly directory = mkdtempSync(join(tmpdir(), 'manager-'));
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting: ((answer: Answer) => void)[] = [];
  readonly ready: Promise<void>;

  constructor(...args: string[]) {
    this.#child = spawn(HARNESS, ['-dir', this.directory, ...args], { stdio: ['pipe', 'pipe', 'ignore'] });
    this.ready = new Promise((resolve) => {
      createInterface({ input: this.#child.stdout }).on('line', (line) => {
        const answer = JSON.parse(line) as Answer;
        if (answer.event === 'ready') resolve();
        if (answer.event === undefined) this.#waiting.shift()?.(answer);
      });
    });
  }

  ask(command: string): Promise<Answer> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#child.stdin.write(`${command}\n`);
    });
  }

  async end(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await ended;
    rmSync(this.directory, { recursive: true, force: true });
  }
}

interface Bench {
  readonly manager: DeviceManager;
  readonly store: TestStore;
  readonly plugin: DevicePlugin;
}

const open: Bench[] = [];
afterEach(async () => {
  for (const { plugin, manager } of open.splice(0)) {
    await plugin.stop();
    await manager.end();
  }
});

async function setUp(registration: RegistrationChoice, ...args: string[]): Promise<Bench> {
  const manager = new DeviceManager(...args);
  await manager.ready;
  const store = new TestStore();
  const options: PluginOptions = {
    ...(defaultValues(pluginOptions) as PluginOptions),
    dir: join(manager.directory, 'device-plugins'),
    'registry-dir': join(manager.directory, 'plugins_registry'),
    registration,
  };
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const parts = { store, access: { toy: toyAccess }, clock: systemClock, changes: createChangeLog(silent), options, timings: QUICK };
  const plugin = createDevicePlugin({ ...parts, resources: [TOY] });
  store.publish([0, 1, 2, 3].map((at) => deviceState({ id: `t${at}`, numaNode: at >> 1 })));
  plugin.start();
  const bench = { manager, store, plugin };
  open.push(bench);
  return bench;
}

/** `capacity/allocatable` of the resource, as for the node's status. */
async function capacity({ manager }: Bench): Promise<string> {
  const { capacity: all, allocatable } = await manager.ask('capacity');
  const amount = (list: unknown): unknown => (list as Readonly<Record<string, unknown>>)[TOY.resource];
  return `${amount(all)}/${amount(allocatable)}`;
}

async function untilCapacity(bench: Bench, wanted: string): Promise<void> {
  let now = '';
  for (const end = performance.now() + 10_000; now !== wanted && performance.now() < end; ) now = await capacity(bench);
  expect(now).toBe(wanted);
}

describe.skipIf(!existsSync(HARNESS))("device plugin and the kubelet's own device manager", () => {
  it.each(['direct', 'watcher'] as const)('registers (%s), tells health, and hands devices out', async (registration) => {
    const bench = await setUp(registration);
    await untilCapacity(bench, '4/4');
    bench.store.publish([0, 1, 2, 3].map((at) => deviceState({ id: `t${at}`, numaNode: at >> 1 }, at === 2 ? 'unhealthy' : 'healthy')));
    await untilCapacity(bench, '4/3');
    const answer = await bench.manager.ask(`admit ml/train main ${TOY.resource}=2`);
    expect(answer).toMatchObject({ ok: true });
    // The pair of NUMA node 0: that is the proposal, since of node 1 only one is healthy.
    expect(JSON.stringify(answer)).toContain('t0,t1');
    const second = await bench.manager.ask(`admit ml/late main ${TOY.resource}=2`);
    expect(second.ok).toBe(false);
    bench.store.publish([0, 1, 2, 3].map((at) => deviceState({ id: `t${at}`, numaNode: at >> 1 })));
    await untilCapacity(bench, '4/4');
    await bench.plugin.stop();
    await untilCapacity(bench, '4/0');
  });

  it.each(['direct', 'watcher'] as const)(
    'is back after each of 20 restarts (%s)',
    async (registration) => {
      const bench = await setUp(registration);
      await untilCapacity(bench, '4/4');
      for (let round = 0; round < 20; round += 1) {
        expect(await bench.manager.ask('restart 0')).toMatchObject({ ok: true });
        await untilCapacity(bench, '4/4');
        await until('one stream is open', () => bench.plugin.stats().resources[0]?.streams === 1);
      }
    },
    120_000,
  );
});
