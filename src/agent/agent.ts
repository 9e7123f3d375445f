import { hostname } from 'node:os';
import cron from 'node-cron';
import type { UsageQuery } from '../accounting/query.ts';
import type { ReadyRules } from '../health/journal/ready-devices.ts';
import { kubeletHealth } from '../health/policy/kubelet-health.ts';
import { OWN_CONDITIONS } from '../health/policy/own-conditions.ts';
import { USE_CONDITIONS } from '../health/policy/use-conditions.ts';
import { type Clock, systemClock } from '../host/clock.ts';
import { readHostFacts } from '../host/facts.ts';
import { Tree } from '../host/fs/tree.ts';
import type { IncidentPlace } from '../incidents/freeze.ts';
import type { Logger } from '../log/logger.ts';
import { createExposition, type Exposition } from '../metrics/page/exposition.ts';
import type { AgentStats, ConfigStatus, HostFacts } from '../model/agent-stats.ts';
import { defined } from '../model/defined.ts';
import type { HealthEvent } from '../model/events.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { DevicePlugin } from '../plugin/plugin.ts';
import { AccessControl } from '../server/access/access-control.ts';
import { resourcesView } from '../server/api/views.ts';
import { type Control, controlServer, controlSocket, type UsedConfig } from '../server/control/control-socket.ts';
import { feedServers } from '../server/feed/feed-sockets.ts';
import { HealthFeed } from '../server/feed/health-feed.ts';
import { createServer } from '../server/http/server.ts';
import { pagesUrl } from '../server/options.ts';
import { supervisorProblems } from '../supervisor/problems.ts';
import { AgentCore, type CoreDependencies } from './core.ts';
import { acceptCondition, HealthService } from './health.ts';
import { HistoryService, IncidentService } from './incidents.ts';
import { InventoryLog } from './log-lines.ts';
import { createAgentPlugin, warnOfResources } from './resources.ts';
import { every } from './schedule.ts';
import type { AgentSettings } from './settings.ts';
import { StateLease, Succession, withTrustedState } from './state.ts';
import { Liveness } from './store.ts';
import { AccountingService } from './usage.ts';
import { UsageLedger } from './usage-ledger.ts';

export interface AgentDependencies {
  readonly logger: Logger;
  readonly version: string;
  /** Undefined while no configuration file is used. */
  readonly config?: () => ConfigStatus | undefined;
  /** Reads the configuration file again, for `POST /-/reload`. Resolves to what is wrong with it. */
  readonly reload?: () => Promise<string | undefined>;
  /** The configuration in use, for commands of the user of the agent. */
  readonly printed?: UsedConfig;
}

export interface RunningAgent {
  /** URL or socket path on which the agent listens. */
  readonly address: string;
  /** Calls `notify` with each snapshot from now on. */
  follow(notify: (snapshot: Snapshot) => void): void;
  /**
   * Takes other settings while everything goes on: connections, streams of unchanged resources, counters and the memory of health. The
   * caller keeps the values that need a restart. Resolves when the plugin has the new resources.
   */
  apply(settings: AgentSettings): Promise<void>;
  /** Resolves to false when the thread for the documents of the node is stuck in the kernel, so that the process cannot end by itself. */
  stop(): Promise<boolean>;
}

/** Starts all parts in the order of the data flow. Throws a {@link UserError} when the address cannot be bound. */
export async function startAgent(configured: AgentSettings, parts: AgentDependencies): Promise<RunningAgent> {
  const { logger, version, config, reload, printed } = parts;
  const access = configured.access === undefined ? undefined : await AccessControl.open(configured.access, logger, systemClock);
  const { settings, problem } = await withTrustedState(configured);
  const succession = await Succession.begin(settings.state.file, logger, systemClock);
  const { lease, sockets } = succession;
  if (problem !== undefined) sockets.refuse('control', controlSocket(configured.state.file), problem);
  const built = await build(settings, parts, { isLasting: true, access, succession });
  const { core, health, usage, ledger, exposition, facts, plugin, incidents, history } = built;
  const liveness = new Liveness(settings.refresh.interval, systemClock);
  const inventory = new InventoryLog(logger);
  usage?.follow((snapshot) => {
    ledger?.update(snapshot);
    exposition.prepare();
  });
  core.store.subscribe(() => {
    const snapshot = core.store.snapshot() as Snapshot;
    liveness.published();
    usage?.published(snapshot);
    exposition.prepare();
  });
  core.store.follow(() => inventory.update(core.store.snapshot() as Snapshot, plugin?.stats()));
  const claimNames = new Map(settings.families.map(({ family }) => [family.name, family.claimNames]));
  const feed = new HealthFeed({
    store: core.store,
    names: { pool: settings.healthFeed.pool || settings.node, claimNames: (device) => claimNames.get(device.family)?.(device) ?? [] },
    fault: () => liveness.fault(),
    clock: systemClock,
  });
  const rules: ReadyRules = {
    // As for the kubelet, but an unknown device is never ready.
    isUsable: (verdict) => kubeletHealth(verdict, { ...health.policy, unknown: 'unhealthy' }) === 'Healthy',
    devicesOf: (resource) => core.devicesOf(resource),
  };
  const page = pagesUrl(settings.web, settings.node);
  const server = createServer({
    exposition,
    store: { snapshot: () => core.store.snapshot(), subscribe: (notify) => core.store.follow(notify) },
    ...defined({ history: history && (() => history.current) }),
    plugin: () => plugin?.stats(),
    fault: () => liveness.fault(),
    ...rules,
    status: () => ({ host: facts?.facts(), config: config?.(), sockets: sockets.stats(), resources: resourcesView(plugin?.stats()) }),
    ...defined({ reload }),
    release: (request) => core.release(request),
    families: settings.families.map(({ family }) => ({
      name: family.name,
      problems: [...supervisorProblems, ...family.problems],
      conditions: [...family.conditions, ...OWN_CONDITIONS, ...USE_CONDITIONS],
      ...defined({ shows: family.shows, activity: family.activity }),
    })),
    feed,
    events: (since) => health.engine.eventsSince(since),
    watched: () => health.watched,
    ...defined({ incidents, usage: ledger && ((query: UsageQuery) => ledger.report(query)) }),
    version,
    node: settings.node,
    hostNames: [settings.node, hostname(), ...(page === undefined ? [] : [new URL(page).hostname])],
    options: settings.web,
    ...defined({ access }),
    logger,
  });
  const address = await server.listen().catch(async (error: unknown) => {
    await server.close();
    await core.close();
    facts?.stop();
    await incidents?.close();
    succession.end();
    throw error;
  });
  const succeeded = {
    async save() {
      await Promise.all([health.save(), usage?.save()]);
      await ledger?.written();
    },
    settled: async () => void (await Promise.all([health.written(), usage?.settled(), ledger?.written(), incidents?.saved()])),
    resumed() {
      void incidents?.resume();
      void health.save();
      void usage?.save();
    },
  };
  const later = { refused: 'a newer agent takes over; ask again in some seconds' };
  const control: Control = {
    accept: (request) => (lease.isHeld ? acceptCondition(request, core.store.snapshot(), health, () => core.assemble()) : later),
    release: async (request) => (lease.isHeld ? await core.release(request) : later),
    takeOver: (ended) => succession.give(succeeded, ended),
    config: async () => (await printed?.config()) ?? {},
    values: () => printed?.values() ?? {},
  };
  if (settings.state.file !== '') await sockets.keep(controlServer(controlSocket(settings.state.file), control, server.local));
  const feeds = feedServers(settings.healthFeed, {
    feed,
    check: { snapshot: () => core.store.snapshot(), fault: () => liveness.fault(), rules },
    askedBy: new Map(settings.families.map(({ family }) => [family.name, family.askedBy])),
  });
  for (const one of feeds) await sockets.keep(one);
  const stopAwaiting = core.store.subscribe(() => {
    stopAwaiting();
    void succession.serving(succeeded.resumed);
  });
  core.holders.poller.watch();
  access?.watch();
  plugin?.start();
  const tick = (intervalMs: number): (() => void) => every(intervalMs, () => void core.refresh(), systemClock);
  let stopTicking = tick(settings.refresh.interval);
  return {
    address,
    follow(notify) {
      core.store.follow(() => notify(core.store.snapshot() as Snapshot));
    },
    async apply(next) {
      health.configure(next);
      usage?.configure(next);
      ledger?.configure(next);
      core.configure(next);
      incidents?.configure(next);
      history?.configure(next);
      liveness.configure(next.refresh.interval);
      warnOfResources(next, logger);
      // Verdicts follow the new rules at once; readings follow with the refresh that begins here.
      if (core.store.snapshot() !== undefined) core.assemble();
      stopTicking();
      stopTicking = tick(next.refresh.interval);
      await plugin?.offer(next.plugin.resources);
    },
    async stop() {
      stopTicking();
      await succession.close();
      access?.close();
      facts?.stop();
      const [ended] = await Promise.all([core.close(), server.close(), plugin?.stop()]);
      await Promise.all([health.close(), usage?.close()]);
      await ledger?.close();
      await incidents?.close();
      succession.end();
      return ended;
    },
  };
}

export interface OneCollection {
  readonly snapshot: Snapshot;
  /** Metrics of devices and containers, without those of the agent. */
  readonly page: string;
  readonly ended: boolean;
}

/** Refreshes everything once, for commands that print and exit. */
export async function collectOnce(settings: AgentSettings, parts: AgentDependencies): Promise<OneCollection> {
  const agent = await openAgent(settings, parts);
  const snapshot = await agent.read();
  const page = agent.page();
  return { snapshot, page, ended: await agent.close() };
}

/** An agent without a server, for a command that reads by itself again and again. It writes nothing to the disk. */
export interface OwnAgent {
  /** Refreshes everything. Readers, and the memory of hung devices, last from one read to the next. */
  read(): Promise<Snapshot>;
  /** Metrics of devices and containers at the latest read, without those of the agent. */
  page(): string;
  /** Events of the reads so far. */
  events(): readonly HealthEvent[];
  /** Resolves to false when the thread for the documents of the node is stuck in the kernel. */
  close(): Promise<boolean>;
}

/** Opens an agent without a server. `own`: parts of a capture or a replay. */
export async function openAgent(settings: AgentSettings, parts: AgentDependencies, own?: CoreDependencies): Promise<OwnAgent> {
  const inMemory = { ...settings, state: { ...settings.state, file: '' } };
  const { core, health, exposition } = await build(inMemory, parts, { isLasting: false, parts: own });
  return {
    async read() {
      await core.refresh();
      core.assemble();
      // A part of a device joins a claim only when it is read after the claim was seen.
      if (own?.isSteady !== true && core.hasUnjoinedClaims) {
        await core.refresh();
        core.assemble();
      }
      return core.store.snapshot() as Snapshot;
    },
    page: () => exposition.devices(),
    events: () => health.engine.eventsSince(0),
    async close() {
      const ended = await core.close();
      await health.close();
      return ended;
    },
  };
}

interface Built {
  readonly core: AgentCore;
  readonly health: HealthService;
  /** Absent in a single reading, which has no past. */
  readonly usage: AccountingService | undefined;
  readonly ledger: UsageLedger | undefined;
  readonly exposition: Exposition;
  /** Only in an agent. */
  readonly facts: HostFactsCache | undefined;
  /** Absent in a single reading. */
  readonly plugin: DevicePlugin | undefined;
  /** Absent in a single reading, and while no incident is kept. */
  readonly incidents: IncidentService | undefined;
  /** Only in an agent. */
  readonly history: HistoryService | undefined;
}

interface BuildDependencies {
  /** False for what a command reads itself. */
  readonly isLasting: boolean;
  readonly access?: AccessControl | undefined;
  readonly parts?: CoreDependencies | undefined;
  /** Only in an agent. */
  readonly succession?: Succession;
}

async function build(
  settings: AgentSettings,
  { logger, version, config }: AgentDependencies,
  { isLasting, access, parts, succession }: BuildDependencies,
): Promise<Built> {
  const clock = parts?.clock ?? systemClock;
  const lease = succession?.lease ?? new StateLease();
  const health = await HealthService.open(settings, logger, clock, isLasting, lease);
  const usage = isLasting ? await AccountingService.open(settings, logger, systemClock, lease) : undefined;
  const facts = isLasting ? new HostFactsCache(settings.roots.sysfs, systemClock) : undefined;
  const page = pagesUrl(settings.web, settings.node);
  const place = (): IncidentPlace => ({ node: settings.node, agentVersion: version, host: facts?.facts() ?? {}, pagesUrl: page });
  const incidents = isLasting ? await IncidentService.open(settings, { health, place, logger, clock: systemClock, lease }) : undefined;
  const core = new AgentCore(settings, health, logger, clock, parts, usage);
  const ledger = isLasting ? new UsageLedger(settings, core.store, logger, systemClock, lease) : undefined;
  incidents?.follow(core.store);
  const history = isLasting ? new HistoryService(settings, incidents, core.store) : undefined;
  const plugin = isLasting ? createAgentPlugin(settings, core, () => health.policy, logger, clock) : undefined;
  const stats = (): AgentStats => {
    const polled = core.holders.poller.stats();
    const host = facts?.facts();
    const { checkpointProblem, claimFileProblems, pods } = core.holders;
    const offered = plugin?.stats();
    const file = config?.();
    return {
      version,
      node: settings.node,
      ...defined({ pagesUrl: page }),
      podResourcesRequests: polled.requests,
      podResourcesDurations: polled.durations,
      ...defined({ checkpointProblem }),
      claimFileProblems: claimFileProblems.map(({ code }) => code),
      ...defined({
        isPodsApiUp: pods?.isUp,
        host,
        failures: incidents?.failures(),
        webConfig: access?.stats(),
        config: file,
        sockets: succession?.sockets.stats(),
        ledgerDamagedLines: ledger?.damagedLines,
      }),
      ...(offered === undefined || offered.resources.length === 0 ? {} : { plugin: offered }),
    };
  };
  const exposition = createExposition({
    families: settings.families.map(({ family }) => ({ name: family.name, metrics: family.metrics })),
    snapshot: () => core.store.snapshot(),
    agent: stats,
    attribution: settings.labels.attribution,
    hasUuids: settings.labels.uuid,
    hasContainerZeros: settings.containerMetrics.zeros,
    ...(usage === undefined ? {} : { usage: (latest) => usage.shown(latest) }),
  });
  return { core, health, usage, ledger, exposition, facts, plugin, incidents, history };
}

/** Memory and kernel change only at a reboot or by hot plug. */
const CALENDAR = '17 */6 * * *';

/** Reads the host facts at the start and then by {@link CALENDAR}, in the background. */
class HostFactsCache {
  readonly #sys: Tree;
  readonly #clock: Clock;
  readonly #task = cron.schedule(CALENDAR, () => void this.#refresh(), { unref: true, suppressMissedWarning: true });
  #facts: HostFacts = {};

  constructor(sysfs: string, clock: Clock) {
    this.#sys = new Tree(sysfs);
    this.#clock = clock;
    void this.#refresh();
  }

  facts(): HostFacts {
    return this.#facts;
  }

  stop(): void {
    void this.#task.destroy();
  }

  async #refresh(): Promise<void> {
    this.#facts = await readHostFacts(this.#sys, this.#clock).catch(() => this.#facts);
  }
}
