import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiDevice, devicesIn, expectedIn } from '../../../src/cli/api-device.ts';
import { NODE_CONDITIONS } from '../../../src/health/journal/known-well.ts';
import { nodeCondition, nodeProblem } from '../../../src/health/journal/node-problem.ts';
import { deviceKey } from '../../../src/model/device.ts';
import { millis } from '../../../src/model/duration.ts';
import { familyReadingsIn } from '../../../src/model/family-reading.ts';
import { defaultValues } from '../../../src/model/options.ts';
import { simulatedFamilies } from '../../../src/sim/families.ts';
import { SimulatedNode } from '../../../src/sim/node.ts';
import { simulationOptions } from '../../../src/sim/options.ts';
import { noOpenssl } from '../../support/certificates.ts';
import { type ServedAgent, serve } from '../../support/serve.ts';
import { unless } from '../../support/skipped.ts';
import { run } from '../command-line.ts';
import { ApiServer, TOKEN } from './api-server.ts';
import { PublishProcess } from './publish-process.ts';

const WAIT = { timeout: 40_000, interval: 100 };
const NODE = 'node-1';
/** How long a driver takes to start: longer than any deadline of a read. */
const SLOW_MS = 12_000;
/** How often the node is looked at after the boot, once in a second. A minute was run by REBOOT_SECONDS=60. */
const SECONDS = Number(process.env.REBOOT_SECONDS ?? 16);
const OWN_TAINT = [{ key: 'device-agent/unhealthy', effect: 'NoSchedule' }];
const SICK = { DevicesUnhealthy: 'True', DevicesUnknown: 'False', DevicesMissing: 'False' };
const WELL = { ...SICK, DevicesUnhealthy: 'False' };

/** A node with one GPU, its agent and its publisher. The program of the driver does what `mode` says. */
class Node {
  readonly api = new ApiServer();
  readonly machine: SimulatedNode;
  #url = '';
  #agent: ServedAgent | undefined;
  #publisher: PublishProcess | undefined;

  constructor() {
    const size = { ...defaultValues(simulationOptions), devices: ['all=0', 'nvidia=1'], pods: 0, 'pod-change': millis(0), story: 'off' };
    this.machine = new SimulatedNode(simulatedFamilies, size);
  }

  async start(): Promise<void> {
    this.#url = await this.api.start();
    this.api.addNode(NODE);
    await this.machine.start();
    writeFileSync(this.#file('token'), TOKEN);
    this.#becomes('boot-1', 'well');
    await this.#run();
  }

  /** The state of the GPU is that before the boot as long as the driver does not answer. */
  async boot(mode: 'dead' | 'slow' | 'well'): Promise<void> {
    await this.#publisher?.stop('SIGKILL');
    await this.#agent?.stop('SIGKILL');
    this.machine.clear();
    this.#becomes('boot-2', mode);
    await this.#run();
  }

  drive(mode: 'well'): void {
    this.#becomes('boot-2', mode);
  }

  async deviceId(): Promise<string> {
    return devicesIn(await (await fetch(`${this.#agent?.url}/api/v1/devices`)).json())?.[0]?.id ?? '';
  }

  conditions(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.api.conditions(NODE).map(({ type, status }) => [type, status]));
  }

  taints(): readonly object[] {
    return this.api.nodes.get(NODE)?.taints ?? [];
  }

  async command(...words: readonly string[]): Promise<number | null> {
    return (await run(['health', ...this.#flags(), ...words])).status;
  }

  /** All that speaks for the node, at one moment. The commands are asked through their functions: a process each would take longer. */
  async look(): Promise<{ readonly said: object; readonly exits: readonly number[]; readonly isReady: boolean; readonly device: string }> {
    const said = { conditions: this.conditions(), taints: this.taints().length, rules: this.api.rules.size };
    const answer = await fetch(`${this.#agent?.url}/api/v1/devices`);
    const ready = await fetch(`${this.#agent?.url}/-/ready/devices?family=nvidia`);
    if (answer.status === 503) return { said, exits: [2, 2, 2, 2], isReady: ready.ok, device: 'none' };
    const body: unknown = await answer.json();
    const devices = devicesIn(body) ?? [];
    const judged = devices.map((device: ApiDevice) => ({ key: deviceKey(device), verdict: device.health, isStale: device.stale === true }));
    const view = { devices: judged, families: familyReadingsIn(body), expected: expectedIn(body) ?? [] };
    const exits = [nodeProblem(view), ...NODE_CONDITIONS.map((type) => nodeCondition(type, view, 0))].map(({ exitCode }) => exitCode);
    return { said, exits, isReady: ready.ok, device: devices[0]?.health.state ?? 'none' };
  }

  async stop(): Promise<void> {
    await this.#publisher?.stop('SIGKILL');
    await this.#agent?.stop('SIGKILL');
    await this.machine.stop();
    await this.api.stop();
  }

  #becomes(boot: string, mode: 'dead' | 'slow' | 'well'): void {
    mkdirSync(this.#file('proc/sys/kernel/random'), { recursive: true });
    writeFileSync(this.#file('proc/sys/kernel/random/boot_id'), `${boot}\n`);
    const refuses = `echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."; exit 9`;
    const startedMs = Date.now() + SLOW_MS;
    const waits = `while [ "$(date +%s%3N)" -lt ${startedMs} ]; do sleep 0.2; done`;
    const first = { dead: refuses, slow: waits, well: ':' }[mode];
    writeFileSync(this.#file('driver'), `#!/bin/sh\n${first}\nexec ${this.#file('bin/nvidia-smi')} "$@"\n`);
    chmodSync(this.#file('driver'), 0o755);
  }

  async #run(): Promise<void> {
    this.#agent = await serve([...this.#flags(), '--refresh.interval=500ms']);
    this.#publisher = new PublishProcess(
      [
        ...this.#flags(),
        `--publish.api-server=${this.#url}`,
        `--publish.token-file=${this.#file('token')}`,
        `--publish.ca-file=${this.api.certificates.path('ca.crt')}`,
        '--publish.resync=5s',
        '--publish.device-taint-rules=NoSchedule',
        '--publish.node-taint=NoSchedule',
      ],
      { NODE_NAME: NODE },
    );
  }

  #flags(): string[] {
    return [...this.machine.flags().filter((flag) => !flag.includes('smi-path')), `--probe.nvidia.smi-path=${this.#file('driver')}`];
  }

  #file = (name: string): string => join(this.machine.root, name);
}

describe.skipIf(noOpenssl !== undefined)(`a boot of a node whose GPU is sick${unless(noOpenssl === undefined, noOpenssl ?? '')}`, () => {
  const nodes = { dead: new Node(), slow: new Node(), well: new Node() };
  const all = Object.entries(nodes) as [keyof typeof nodes, Node][];

  beforeAll(async () => {
    for (const [, node] of all) await node.start();
  }, 200_000);
  afterAll(async () => {
    await Promise.all(all.map(([, node]) => node.stop()));
  });

  it('removes nothing that says ill, and calls nothing well, before the GPU is listed as healthy', async () => {
    for (const [, node] of all) await expect.poll(() => node.conditions(), WAIT).toEqual(WELL);
    for (const [, node] of all) node.machine.begin('ecc', await node.deviceId());
    for (const [, node] of all) {
      await expect.poll(() => node.conditions(), WAIT).toEqual(SICK);
      await expect.poll(() => [node.taints(), node.api.rules.size], WAIT).toEqual([OWN_TAINT, 1]);
    }
    for (const [mode, node] of all) await node.boot(mode);
    const seen = { dead: [] as object[], slow: [] as object[], well: [] as object[] };
    for (let second = 0; second < SECONDS; second += 1) {
      for (const [mode, node] of all) {
        const before = await node.look();
        seen[mode].push(before);
        if (before.device === 'healthy') continue;
        expect(before.said, `${mode}, second ${second}`).toMatchObject({ taints: 1, rules: 1 });
        expect(before.said, `${mode}, second ${second}`).not.toMatchObject({ conditions: { DevicesUnhealthy: 'False' } });
        expect(before.exits.slice(0, 2), `${mode}, second ${second}`).not.toContain(0);
        expect(before.isReady, `${mode}, second ${second}`).toBe(false);
      }
      await sleep(1_000);
    }
    if (process.env.REBOOT_SECONDS !== undefined) process.stdout.write(`${JSON.stringify(seen, undefined, 1)}\n`);
    expect(await nodes.dead.command()).not.toBe(0);
    expect(await nodes.dead.command('--npd=DevicesUnhealthy')).not.toBe(0);
    for (const node of [nodes.slow, nodes.well]) {
      await expect.poll(() => [node.conditions(), node.taints(), node.api.rules.size], WAIT).toEqual([WELL, [], 0]);
      expect(await node.command()).toBe(0);
      expect(await node.command('--npd=DevicesUnhealthy')).toBe(0);
    }
    expect([nodes.dead.taints(), nodes.dead.api.rules.size]).toEqual([OWN_TAINT, 1]);
    nodes.dead.drive('well');
    await expect.poll(() => [nodes.dead.conditions(), nodes.dead.taints(), nodes.dead.api.rules.size], WAIT).toEqual([WELL, [], 0]);
  }, 300_000);
});
