import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { usageOptions } from '../../src/accounting/options.ts';
import { AgentCore } from '../../src/agent/core.ts';
import { HealthService } from '../../src/agent/health.ts';
import { deviceOptions, refreshOptions, stateOptions } from '../../src/agent/options.ts';
import type { AgentSettings } from '../../src/agent/settings.ts';
import { AccountingService } from '../../src/agent/usage.ts';
import type { Device as KubeletDevice } from '../../src/generated/deviceplugin/v1beta1/api.ts';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import { kubeletHealth } from '../../src/health/policy/kubelet-health.ts';
import type { HealthConfig } from '../../src/health/policy/policy-config.ts';
import { incidentOptions } from '../../src/incidents/options.ts';
import { podResourcesOptions } from '../../src/kubelet/options.ts';
import type { Logger } from '../../src/log/logger.ts';
import { labelOptions } from '../../src/metrics/options.ts';
import { createExposition, type Exposition } from '../../src/metrics/page/exposition.ts';
import { hours, millis } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { type ListCall, ListStream, ResourceOffers } from '../../src/plugin/offers/resource-offers.ts';
import { pluginOptions } from '../../src/plugin/options.ts';
import { healthFeedOptions, webOptions } from '../../src/server/options.ts';
import { stallOptions } from '../../src/waiting/options.ts';
import { folderInMemory } from '../support/folder-in-memory.ts';
import { TestKubelet } from '../support/kubelet/kubelet.ts';
import { probeOptions } from '../support/probe-options.ts';
import type { OracleFamily } from './family.ts';
import { InlineThreads } from './inline-readers.ts';
import { OverlaidTree } from './overlaid-tree.ts';
import { VirtualClock } from './virtual-clock.ts';

const NEVER = hours(24_000);

/** Default interval of refreshes, and default age at which a device is unknown. */
export const INTERVAL_MS = 10_000;
export const STALE_MS = 60_000;
/** Tolerance for "at once": a refresh, and the time until a hang is detected. */
export const SLACK_MS = 2_000;

export const RESOURCE = 'example.com/device';

const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** Number of event loop rounds in which socket data arrives. */
const QUIET_ROUNDS = 3;

/** Real-time interval of the checks for sleeping commands. A sleeping command counts as hanging. */
const LOOK_MS = 2;

/** Machine of each family, built once, because creating hundreds of files takes longer than a history. */
const machines = new Map<OracleFamily, OverlaidTree>();
process.once('exit', () => {
  for (const { root } of machines.values()) rmSync(root, { recursive: true, force: true });
});

function machineOf(family: OracleFamily): OverlaidTree {
  const known = machines.get(family);
  if (known !== undefined) return known;
  const tree = new OverlaidTree(folderInMemory('device-agent-oracle-'));
  const { files, links } = family.machine();
  tree.build({ ...files, 'proc/sys/kernel/random/boot_id': 'boot\n' }, links);
  for (const folder of ['sys', 'proc', 'dev']) mkdirSync(join(tree.root, folder), { recursive: true });
  machines.set(family, tree);
  return tree;
}

/** Settings of one node, made of those of all nodes. */
type MoreSettings = (settings: AgentSettings, kubelet: TestKubelet) => Partial<AgentSettings>;

/** A whole node with one clock: hardware as files, a kubelet and the agent. */
export class OracleNode {
  readonly clock = new VirtualClock();
  readonly tree: OverlaidTree;
  readonly threads: InlineThreads;
  readonly kubelet: TestKubelet;
  /** What differs from a result that is made anew. */
  readonly differences: string[] = [];
  readonly #family: OracleFamily;
  readonly #isWithKubelet: boolean;
  readonly #policy: HealthConfig;
  readonly #more: MoreSettings;
  readonly #pending = new Set<Promise<unknown>>();
  readonly #ended: Promise<unknown>[] = [];
  #agents = 0;
  #core: AgentCore | undefined;
  #health: HealthService | undefined;
  #offers: ResourceOffers | undefined;
  #sent: readonly KubeletDevice[] | undefined;

  constructor(family: OracleFamily, isWithKubelet: boolean, policy: HealthConfig = {}, more: MoreSettings = () => ({})) {
    this.#family = family;
    this.#policy = policy;
    this.#more = more;
    this.#isWithKubelet = isWithKubelet;
    this.tree = machineOf(family);
    this.threads = new InlineThreads(this.tree, this.clock, [family.family]);
    this.kubelet = new TestKubelet({ directory: join(this.root, 'kubelet'), clock: this.clock, rate: { perSecond: 1e6, burst: 1e6 } });
  }

  get snapshot(): Snapshot | undefined {
    return this.#core?.store.snapshot();
  }

  /** Last list of the running agent to the kubelet, id to health; undefined before the first list. */
  get offered(): ReadonlyMap<string, string> | undefined {
    return this.#sent && new Map(this.#sent.map(({ ID, health }) => [ID, health]));
  }

  async start(): Promise<void> {
    if (this.#isWithKubelet) await this.kubelet.start();
    await this.startAgent();
  }

  async startAgent(): Promise<void> {
    const settings = this.#settings();
    this.#health = await HealthService.open(settings, SILENT, this.clock, true);
    // The agent judges what it remembers before it reads.
    this.#compareWithCold(this.#health);
    const { start } = this.threads;
    // In memory: histories of accounts over restarts are in test/usage.
    const usage = await AccountingService.open({ ...settings, state: { ...settings.state, file: '' } }, SILENT, this.clock);
    const core = new AgentCore(settings, this.#health, SILENT, this.clock, { start }, usage);
    const ask = core.holders.poller.refresh.bind(core.holders.poller);
    core.holders.poller.refresh = () => (this.#isWithKubelet ? this.#track(ask()) : Promise.resolve());
    this.#core = core;
    this.#comparePage(core);
    this.#offer(core);
  }

  /** Compares each page, which keeps what did not change, with one that is made anew of the same snapshot. */
  #comparePage(core: AgentCore): void {
    const page = this.#exposition(core);
    core.store.subscribe(() => {
      if (core === this.#core && page.devices() !== this.#exposition(core).devices())
        this.differences.push('the page is not that of the snapshot');
    });
  }

  /** Compares each judgement in the same way. */
  #compareWithCold({ engine, policy }: HealthService): void {
    // A copy has no object of the judgement before.
    const cold = createHealthEngine({ policy, state: structuredClone(engine.state()) });
    const judge = engine.judge.bind(engine);
    engine.judge = (input, nowMs) => {
      const expected = cold.judge(structuredClone(input), nowMs);
      const judged = judge(input, nowMs);
      if (!isDeepStrictEqual([judged.verdicts, judged.events], [expected.verdicts, expected.events]))
        this.differences.push('a device that is judged anew has another verdict');
      if (!isDeepStrictEqual(engine.memory(), cold.memory())) this.differences.push('a device that is judged anew has another memory');
      return judged;
    };
  }

  #exposition(core: AgentCore): Exposition {
    return createExposition({ families: [this.#family.family], snapshot: () => core.store.snapshot(), agent: () => ({}) as never });
  }

  /** Simulates SIGKILL: the agent's state file is copied, and all its later writes are ignored. */
  kill(): void {
    const core = this.#core;
    if (core === undefined) return;
    const state = this.#statePath;
    this.#agents += 1;
    if (existsSync(state)) copyFileSync(state, this.#statePath);
    this.#offers?.stop();
    core.store.publish = () => {};
    const health = this.#health;
    this.#ended.push(core.close().then(() => health?.close()));
    this.#core = undefined;
    this.#sent = undefined;
  }

  /** The machine gets another boot, while no agent runs. */
  boot(): void {
    this.tree.write('proc/sys/kernel/random/boot_id', (before) => `${before.trim()}1`);
  }

  /** Loses what the agent remembers, while none runs. */
  loseState(): void {
    rmSync(this.#statePath, { force: true });
  }

  /** Refreshes once, until the refresh ends or hangs, and then lets `thenMs` pass. */
  async refresh(thenMs: number): Promise<void> {
    void this.#core?.refresh();
    await this.settle();
    await this.clock.advance(thenMs, () => this.settle());
  }

  /** Refreshes once where nothing hangs, until all has answered. */
  async read(): Promise<void> {
    await this.#core?.refresh();
    await this.settle();
  }

  /** Queries only the kubelet, outside of a refresh. */
  async ask(): Promise<void> {
    void this.#core?.holders.poller.refresh();
    await this.settle();
  }

  /** Waits for all work in progress that does not hang. */
  async settle(): Promise<void> {
    for (let round = 0; round < QUIET_ROUNDS; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      const busy = [...this.threads.running, ...this.#pending];
      if (busy.length === 0) continue;
      if (this.threads.isCommandAsleep) break;
      await Promise.race([Promise.all(busy), new Promise((resolve) => setTimeout(resolve, LOOK_MS))]);
      round = -1;
    }
    await this.#health?.written();
  }

  async stop(): Promise<void> {
    this.kill();
    this.tree.reset();
    this.threads.release();
    await Promise.all(this.#ended);
    await this.kubelet.stop();
    rmSync(join(this.root, 'state'), { recursive: true, force: true });
  }

  get root(): string {
    return this.tree.root;
  }

  get #statePath(): string {
    return join(this.root, 'state', `health-${this.#agents}.json`);
  }

  #track<T>(promise: Promise<T>): Promise<T> {
    this.#pending.add(promise);
    void promise.finally(() => this.#pending.delete(promise));
    return promise;
  }

  /** Connects the plugin's list stream to a fake call. */
  #offer(core: AgentCore): void {
    const policy = (this.#health as HealthService).policy;
    const offers = new ResourceOffers(
      { resource: RESOURCE, select: { family: this.#family.family.name } },
      {
        store: core.store,
        healthOf: (verdict) => kubeletHealth(verdict, policy),
        clock: this.clock,
        missingRetentionMs: 86_400_000,
        rivals: [],
      },
    );
    offers.start();
    this.#offers = offers;
    const call = {
      on: () => call,
      end() {},
      write: (response: { readonly devices: readonly KubeletDevice[] }, done: () => void) => {
        this.#sent = response.devices;
        done();
        return true;
      },
    };
    const open = (): boolean =>
      offers.isReady() &&
      new ListStream(
        call as unknown as ListCall,
        offers,
        () => () => {},
        () => {},
      ) !== undefined;
    if (open()) return;
    const cancel = offers.onChange(() => {
      if (offers.isReady()) {
        cancel();
        open();
      }
    });
  }

  #settings(): AgentSettings {
    const { family, options } = this.#family;
    const texts = Object.fromEntries(Object.entries(options).map(([name, text]) => [name, text.replaceAll('{root}', this.root)]));
    const settings: AgentSettings = {
      roots: { sysfs: join(this.root, 'sys'), procfs: join(this.root, 'proc'), dev: join(this.root, 'dev') },
      refresh: { ...defaultValues(refreshOptions), interval: millis(INTERVAL_MS), 'stale-after': millis(STALE_MS) },
      device: defaultValues(deviceOptions),
      podResources: {
        ...defaultValues(podResourcesOptions),
        socket: this.kubelet.podResourcesSocket,
        checkpoint: '',
        timeout: millis(500),
      },
      dra: { 'metadata-dir': '' },
      cdi: { dirs: [] },
      families: [{ family, options: probeOptions(family, texts) as Readonly<Record<string, unknown>> }],
      pools: [],
      health: { flapping: { count: 100 }, ...this.#policy },
      plugin: { options: defaultValues(pluginOptions), resources: [] },
      state: { ...defaultValues(stateOptions), file: this.#statePath },
      // Simulated GPUs work without a process, held or not. The times of the conditions of use are longer than any history.
      // A pod without UID that comes back is the same pod, so that each one ends at once.
      usage: { ...defaultValues(usageOptions), 'absent-for': millis(0), 'busy-after': NEVER, 'dirty-after': NEVER, 'idle-after': NEVER },
      stall: defaultValues(stallOptions),
      incidents: defaultValues(incidentOptions),
      expect: {},
      prices: {},
      idle: {},
      labels: defaultValues(labelOptions),
      containerMetrics: { zeros: true },
      web: defaultValues(webOptions),
      healthFeed: defaultValues(healthFeedOptions),
      node: 'oracle',
    };
    return { ...settings, ...this.#more(settings, this.kubelet) };
  }
}
