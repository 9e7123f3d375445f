import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accountKey, entryReader, type LedgerEntry, openLedger } from '../../src/accounting/ledger.ts';
import type { Assembler } from '../../src/agent/assemble.ts';
import type { AgentSettings } from '../../src/agent/settings.ts';
import { AccountingService } from '../../src/agent/usage.ts';
import { UsageLedger } from '../../src/agent/usage-ledger.ts';
import type { UptimeClock } from '../../src/host/clock.ts';
import type { Logger } from '../../src/log/logger.ts';
import { createExposition, type Exposition } from '../../src/metrics/page/exposition.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import { defaultValues } from '../../src/model/options.ts';
import type { CheckpointEntry } from '../../src/model/pod-resources.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { stallOptions } from '../../src/waiting/options.ts';
import { familyState, listed, lookAt, podResources } from '../support/snapshots.ts';
import { assembler, DAY, MINUTE, metrics, settings as rules } from './small-node.ts';

/** Gives the node of the test an identity of its boot. */
export function boot(folder: string, id: string): void {
  const directory = join(folder, 'proc/sys/kernel/random');
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'boot_id'), `${id}\n`);
}

/** Settings of an agent whose state is below the folder. */
export const settingsIn = (folder: string, interval = 10_000): AgentSettings =>
  ({
    roots: { procfs: join(folder, 'proc') },
    refresh: { interval, timeout: 15_000, 'stale-after': MINUTE },
    device: { 'missing-retention': DAY },
    usage: { 'zero-for': MINUTE, linger: 3 * MINUTE, 'absent-for': MINUTE / 2, 'keep-days': 30, 'keep-mib': 32, labels: [] },
    state: { file: join(folder, 'state/health.json') },
    idle: {},
    stall: defaultValues(stallOptions),
    families: ['gpu', 'hca'].map((name) => ({ family: { name, metrics, activity: rules.activity.get(name)?.spec }, options: {} })),
  }) as unknown as AgentSettings;

/** A clock that only the test moves. Timers of the agent run when their time has come; those of writes never do. */
export class HandClock implements UptimeClock {
  atMs = 5 * MINUTE;
  /** When the process began. */
  begunMs = 0;
  wallMs = Date.parse('2030-01-01T00:00:00Z');
  #timers: { readonly atMs: number; readonly run: () => void }[] = [];

  now = (): number => this.wallMs + this.atMs;
  sinceBoot = (): number => this.atMs;
  monotonic = (): number => this.atMs - this.begunMs;
  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.atMs + delayMs, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  }
  pass(ms: number): void {
    this.atMs += ms;
    const due = this.#timers.filter(({ atMs }) => atMs <= this.atMs);
    this.#timers = this.#timers.filter(({ atMs }) => atMs > this.atMs);
    for (const { run } of due) run();
  }
  /** A killed process has no timers. */
  restart(): void {
    this.#timers = [];
    this.begunMs = this.atMs;
  }
}

export class Log implements Logger {
  readonly lines: string[] = [];
  debug(): void {}
  info = (text: string): void => void this.lines.push(`info ${text}`);
  warn = (text: string, fields?: object): void => void this.lines.push(`warn ${text} ${JSON.stringify(fields)}`);
  error = (text: string): void => void this.lines.push(`error ${text}`);
}

/** What one refresh finds on the node. */
export interface Scene {
  readonly reports: readonly DeviceReport[];
  readonly holds: readonly Allocation[];
  readonly checkpoint?: readonly CheckpointEntry[];
  /** Begin of the read on the monotonic clock; by default now. */
  readonly readFromMs?: number;
}

/** The part of an agent that keeps accounts: with its page, its file and its ledger. */
export class DiskAgent {
  readonly keeper: AccountingService;
  readonly ledger: UsageLedger;
  readonly #assembler: Assembler;
  readonly #clock: HandClock;
  readonly #page: Exposition;
  #snapshot: Snapshot | undefined;

  private constructor(keeper: AccountingService, settings: AgentSettings, known: readonly DeviceReport[], clock: HandClock, log: Logger) {
    this.keeper = keeper;
    this.#clock = clock;
    this.#assembler = assembler(
      keeper,
      known.map(({ device }) => ({ device, readAtMs: clock.now() })),
    );
    this.ledger = new UsageLedger(settings, { snapshot: () => this.#snapshot }, log, clock);
    keeper.follow((snapshot) => this.ledger.update(snapshot));
    this.#page = createExposition({
      families: ['gpu', 'hca'].map((name) => ({ name, metrics })),
      snapshot: () => this.#snapshot,
      agent: () => {
        throw new Error('the page of an agent is not asked');
      },
      usage: (latest) => keeper.shown(latest),
      clock,
    });
  }

  /** Starts an agent with what an earlier one left in the folder. `known`: devices that it remembers. */
  static async start(settings: AgentSettings, clock: HandClock, known: readonly DeviceReport[] = [], log = new Log()): Promise<DiskAgent> {
    clock.restart();
    return new DiskAgent(await AccountingService.open(settings, log, clock), settings, known, clock, log);
  }

  refresh({ reports, holds, checkpoint = [], readFromMs }: Scene): Snapshot {
    const clock = this.#clock;
    const nowMs = clock.monotonic();
    const snapshot = this.#assembler.assemble(
      {
        families: ['gpu', 'hca'].map((family) => {
          const own = reports.filter(({ device }) => device.family === family);
          return { state: familyState(family), latest: lookAt(listed(own), clock.now(), nowMs, readFromMs ?? nowMs) };
        }),
        podResources: podResources(holds, { answeredAtMs: clock.now() }),
        checkpoint,
      },
      { nowMs: clock.now(), monotonicMs: nowMs },
    );
    this.#snapshot = snapshot;
    this.keeper.published(snapshot);
    return snapshot;
  }

  /** Writes the latest accounts. A write of earlier ones may be under way. */
  async save(): Promise<void> {
    await this.keeper.save();
    await this.keeper.save();
  }

  /** Families of which a further read would be made at once. */
  get awaited(): Assembler['awaited'] {
    return this.#assembler.awaited;
  }

  /** Totals of containers on the page, by series. */
  totals(): ReadonlyMap<string, number> {
    const lines = this.#page.devices().split('\n');
    return new Map(
      lines.flatMap((line) => {
        const [, series, value] = /^(container_\w+_total\{.*\}) (\S+)$/.exec(line) ?? [];
        return series === undefined ? [] : [[series, Number(value)] as const];
      }),
    );
  }

  /** All totals of one pod by metric. */
  totalsOf(pod: string): Readonly<Record<string, number>> {
    const own = [...this.totals()].filter(([series]) => series.includes(`pod="${pod}"`));
    return Object.fromEntries(own.map(([series, value]) => [series.slice('container_device_'.length, series.indexOf('{')), value]));
  }
}

/** Last line of each account of a container in the ledger of the folder, as a later agent reads it. */
export const accountsIn = async (settings: AgentSettings, clock: HandClock): Promise<readonly LedgerEntry[]> => [
  ...new Map((await linesIn(settings, clock)).map((entry) => [accountKey(entry), entry])).values(),
];

/** All lines of the ledger of the folder. */
export async function linesIn(settings: AgentSettings, clock: HandClock): Promise<readonly LedgerEntry[]> {
  const entryOf = await entryReader();
  const lines: LedgerEntry[] = [];
  const log = openLedger(join(settings.state.file, '../usage'), settings.usage, clock);
  await log.read(0, (record) => {
    const entry = entryOf(record);
    if (entry !== undefined) lines.push(entry);
  });
  return lines;
}
