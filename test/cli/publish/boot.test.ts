import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentCore } from '../../../src/agent/core.ts';
import { acceptCondition, HealthService } from '../../../src/agent/health.ts';
import { boardIn, ownBoard } from '../../../src/cli/board-answer.ts';
import { kubernetesAt } from '../../../src/cli/publish/kubernetes.ts';
import { Publisher } from '../../../src/cli/publish/publisher.ts';
import { type AgentView, feedMessageIn, nodeViewOf } from '../../../src/cli/publish/view.ts';
import { nodeCondition, nodeProblem } from '../../../src/health/journal/node-problem.ts';
import { readyDevices } from '../../../src/health/journal/ready-devices.ts';
import { createChangeLog } from '../../../src/log/changes.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Device } from '../../../src/model/device.ts';
import { seconds } from '../../../src/model/duration.ts';
import { NODE_CONDITIONS } from '../../../src/model/known-well.ts';
import type { DeviceFamily } from '../../../src/probes/family.ts';
import { jsonText } from '../../../src/server/api/views.ts';
import { feedList } from '../../../src/server/feed/feed-list.ts';
import { coreSettings } from '../../agent/core-settings.ts';
import { spec } from '../../health/one-device.ts';
import { VirtualClock } from '../../oracle/virtual-clock.ts';
import { noOpenssl } from '../../support/certificates.ts';
import { scriptedReaders } from '../../support/scripted-reader.ts';
import { seededRandom } from '../../support/seeded.ts';
import { unless } from '../../support/skipped.ts';
import { device, listed, report } from '../../support/snapshots.ts';
import { ApiServer, TOKEN } from './api-server.ts';

const NODE = 'node-1';
const NAMING = { pool: NODE, claimNames: () => [] };
/** How long a driver takes to start: longer than the deadline of a read. */
const SLOW_MS = seconds(12);
const GPU: Device = device({ id: 'gpu-a', family: 'gpu', identity: 'a', pciAddress: '0000:01:00.0' });
const family = {
  name: 'gpu',
  summary: 'GPUs.',
  metrics: [],
  problems: [],
  options: {},
  conditions: [spec('Broken', { class: 'latched' })],
  claimNames: ({ id }: Device) => [{ driver: 'gpu.example.com', device: id === 'gpu-c' ? 'gpu-1' : 'gpu-0' }],
  createProbe: () => undefined,
} as unknown as DeviceFamily;

const shows = (shown: Device, isBroken: boolean): Collection =>
  listed([report({ device: shown, findings: [{ type: 'Broken', status: isBroken, reason: 'Because', message: '' }] })]);
const REFUSES: Collection = { reports: [], problems: [{ code: 'driver-not-loaded', message: 'not loaded' }], listing: 'partial' };
const NONE = listed([]);
const AGENT = { exits: [0, 0, 0, 0], isReady: true };

/** A node on a clock that the test moves: agent, publisher and API server. */
class Node {
  readonly clock = new VirtualClock();
  readonly api = new ApiServer();
  readonly root = mkdtempSync(join(tmpdir(), 'device-agent-boot-'));
  /** What the driver answers, and from when on. */
  answer = shows(GPU, false);
  answersFromMs = 0;
  core: AgentCore | undefined;
  health: HealthService | undefined;
  #publisher: Publisher | undefined;
  #onTheWire = 0;
  #boots = 0;

  async start(): Promise<void> {
    const server = new URL(await this.api.start());
    this.api.addNode(NODE);
    const token = this.api.certificates.path('token');
    writeFileSync(token, TOKEN);
    const client = kubernetesAt(server, { 'api-server': '', 'token-file': token, 'ca-file': this.api.certificates.path('ca.crt') });
    const log = (): void => undefined;
    const logger = { debug: log, info: log, warn: log, error: log };
    const parts = {
      kubernetes: {
        call: async (...words: Parameters<typeof client.call>) => {
          this.#onTheWire += 1;
          return await client.call(...words).finally(() => {
            this.#onTheWire -= 1;
          });
        },
      },
      ...{ ask: async () => ({}), view: () => this.view, clock: this.clock, logger, random: seededRandom(3) },
      changes: createChangeLog(logger, () => this.clock.monotonic()),
    };
    const effects = { 'device-taint-rules': 'NoSchedule', 'node-taint': 'NoSchedule' };
    this.#publisher = new Publisher(parts, { events: false, ...effects, node: NODE, families: [family], resyncMs: seconds(10) });
    await this.boot();
  }

  /** The machine boots: another boot id, and a new agent with the state file of before. */
  async boot(): Promise<void> {
    await this.core?.close();
    await this.health?.close();
    mkdirSync(join(this.root, 'sys/kernel/random'), { recursive: true });
    this.#boots += 1;
    writeFileSync(join(this.root, 'sys/kernel/random/boot_id'), `boot-${this.#boots}`);
    await this.startAgent();
  }

  async startAgent(): Promise<void> {
    const log = (): void => undefined;
    const logger = { debug: log, info: log, warn: log, error: log };
    const settings = {
      ...coreSettings([{ family, options: {} }], this.root, '/nonexistent'),
      refresh: { interval: seconds(1), timeout: seconds(5), 'stale-after': seconds(60) },
      state: { file: join(this.root, 'health.json') },
    } as unknown as Parameters<typeof HealthService.open>[0];
    this.health = await HealthService.open(settings, logger, this.clock, true);
    this.core = new AgentCore(settings, this.health, logger, this.clock, {
      start: scriptedReaders((_, answer) => {
        const waitMs = this.answersFromMs - this.clock.monotonic();
        if (waitMs > 0) this.clock.after(waitMs, () => answer(this.answer));
        else queueMicrotask(() => answer(this.answer));
      }),
    });
  }

  /** As the messages of the feed and of the API give it. */
  get view(): AgentView | undefined {
    const snapshot = this.core?.store.snapshot();
    if (snapshot === undefined) return undefined;
    const { devices, families } = feedList(snapshot, NAMING, undefined);
    const line = { families, devices: devices.map(({ state, health }) => ({ ...state.device, state: health })) };
    const message = feedMessageIn(JSON.parse(JSON.stringify(line)));
    const board = boardIn(JSON.parse(jsonText(ownBoard(snapshot, []))));
    return message && board && { ...message, board };
  }

  /** Lets one second pass, with a refresh and a message of the feed. */
  async second(): Promise<void> {
    void this.core?.refresh();
    await this.#settle();
    this.#publisher?.wake();
    await this.#settle();
    await this.clock.advance(seconds(1), () => this.#settle());
  }

  async pass(count: number): Promise<void> {
    for (let n = 0; n < count; n += 1) await this.second();
  }

  /** What the cluster has. */
  cluster(): object {
    const conditions = this.api.conditions(NODE).map(({ type, status }) => [type, status]);
    return { ...Object.fromEntries(conditions), taints: this.api.nodes.get(NODE)?.taints.length, rules: this.api.rules.size };
  }

  /** What the agent answers: the exit status of `health` and of each `--npd`, and whether the devices are ready. */
  agent(): typeof AGENT {
    const snapshot = this.core?.store.snapshot();
    const { view } = this;
    if (snapshot === undefined || view === undefined) return { exits: [2, 2, 2, 2], isReady: false };
    const seen = nodeViewOf(view);
    const judged = { ...seen, devices: seen.devices.map((one) => ({ ...one, health: { ...one.health, conditions: [] } })) };
    const exits = [nodeProblem(judged), ...NODE_CONDITIONS.map((type) => nodeCondition(type, judged, 0))].map(({ exitCode }) => exitCode);
    const isUsable = ({ state }: { readonly state: string }): boolean => state === 'healthy';
    return { exits, isReady: readyDevices(snapshot, {}, { isUsable, devicesOf: () => undefined }).isReady };
  }

  async stop(): Promise<void> {
    await this.core?.close();
    await this.health?.close();
    await this.api.stop();
    rmSync(this.root, { recursive: true, force: true });
  }

  async #settle(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet = this.#onTheWire === 0 ? quiet + 1 : 0) await new Promise((resolve) => setImmediate(resolve));
    await this.health?.written();
  }
}

const SICK = { DevicesUnhealthy: 'True', DevicesUnknown: 'False', DevicesMissing: 'False', taints: 1, rules: 1 };
const WELL = { DevicesUnhealthy: 'False', DevicesUnknown: 'False', DevicesMissing: 'False', taints: 0, rules: 0 };

let node: Node;
beforeEach(async () => {
  node = new Node();
  await node.start();
});
afterEach(async () => {
  await node.stop();
});

describe.skipIf(noOpenssl !== undefined)(
  `a boot of a node whose device is out of service${unless(noOpenssl === undefined, noOpenssl ?? '')}`,
  () => {
    beforeEach(async () => {
      await node.pass(10);
      expect([node.cluster(), node.agent()]).toEqual([WELL, AGENT]);
      node.answer = shows(GPU, true);
      await node.pass(10);
      expect([node.cluster(), node.agent()]).toEqual([SICK, { exits: [1, 1, 0, 0], isReady: false }]);
    });

    it.each([
      ['well', 0, shows(GPU, false), 1],
      ['slow', SLOW_MS, shows(GPU, false), 13],
      ['dead', 0, REFUSES, Number.POSITIVE_INFINITY],
    ] as const)(
      'with a driver that is %s removes nothing that says ill before the device is listed as healthy',
      async (_, waitMs, answer, wellFrom) => {
        node.answer = answer;
        node.answersFromMs = node.clock.monotonic() + waitMs;
        await node.boot();
        for (let second = 1; second <= 60; second += 1) {
          await node.second();
          const isListed = node.view?.feed.some(({ state }) => state === 'HEALTHY') === true;
          if (second < wellFrom)
            expect(node.cluster(), `second ${second}`).toMatchObject({ DevicesUnhealthy: 'True', taints: 1, rules: 1 });
          if (isListed) continue;
          expect(node.agent().isReady, `second ${second}`).toBe(false);
          expect(node.agent().exits.slice(0, 3), `second ${second}`).not.toContain(0);
        }
        const isDead = wellFrom === Number.POSITIVE_INFINITY;
        expect(node.cluster()).toEqual(isDead ? { ...SICK, DevicesUnknown: 'True', DevicesMissing: 'Unknown' } : WELL);
        expect(node.agent()).toEqual(isDead ? { exits: [1, 1, 1, 2], isReady: false } : AGENT);
        node.answer = shows(GPU, false);
        await node.pass(20);
        expect([node.cluster(), node.agent()]).toEqual([WELL, AGENT]);
      },
    );

    it('takes other hardware in its place for a replacement, and an empty place for none', async () => {
      await node.boot();
      node.answer = NONE;
      await node.pass(30);
      expect([node.cluster(), node.agent().exits[0]]).toEqual([{ ...SICK, DevicesUnknown: 'Unknown', DevicesMissing: 'True' }, 1]);
      node.answer = shows({ ...GPU, id: 'gpu-b', identity: 'b' }, false);
      await node.pass(30);
      expect([node.cluster(), node.agent()]).toEqual([WELL, AGENT]);
    });
  },
);

describe.skipIf(noOpenssl !== undefined)('a device that stays lost', () => {
  it('is not forgotten by time alone, over restarts of the agent too, until a person accepts that', async () => {
    await node.pass(10);
    node.answer = listed([...shows({ ...GPU, id: 'gpu-c', identity: 'c', pciAddress: '0000:02:00.0' }, false).reports]);
    await node.pass(10);
    const lost = { ...SICK, DevicesMissing: 'True' };
    expect(node.cluster()).toEqual(lost);
    // The retention of the settings is a minute.
    await node.pass(90);
    expect(node.view?.feed.map(({ id }) => id)).toEqual(['gpu-c']);
    expect([node.cluster(), node.agent()]).toEqual([lost, { exits: [1, 1, 0, 1], isReady: false }]);
    await node.core?.close();
    await node.health?.close();
    await node.startAgent();
    await node.pass(10);
    expect([node.cluster(), node.agent().exits]).toEqual([lost, [1, 1, 0, 1]]);
    const { core, health } = node;
    if (core === undefined || health === undefined) throw new Error('no agent');
    const ask = (name: string) =>
      acceptCondition({ do: 'accept', device: name, why: 'removed' }, core.store.snapshot(), health, () => core.assemble());
    expect(ask('gpu-a')).toEqual({ device: 'gpu/gpu-a', accepted: ['out of service'] });
    expect(ask('gpu-a')).toEqual({ refused: 'there is no device gpu-a' });
    await node.pass(10);
    expect(node.cluster()).toMatchObject({ DevicesUnhealthy: 'False', DevicesMissing: 'False', taints: 0 });
    expect(node.agent()).toEqual(AGENT);
  });
});
