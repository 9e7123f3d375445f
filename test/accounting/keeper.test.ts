import { existsSync, mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Assembler } from '../../src/agent/assemble.ts';
import type { AgentSettings } from '../../src/agent/settings.ts';
import { AccountingService } from '../../src/agent/usage.ts';
import type { Logger } from '../../src/log/logger.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import type { ContainerUsage } from '../../src/model/usage.ts';
import { seeded } from '../support/seeded.ts';
import { familyState, listed, lookAt, podResources } from '../support/snapshots.ts';
import { boot, HandClock, Log, settingsIn } from './disk-agent.ts';
import { assembler, gpu, gpuReadings, HOUR, holds, report } from './small-node.ts';

const INTERVAL = 10_000;

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-usage-'));
  boot(folder, 'first');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const path = (): string => join(folder, 'state/usage.json');
const settings = (): AgentSettings => settingsIn(folder, INTERVAL);

/** One agent on a GPU that one pod holds. */
class Agent {
  readonly keeper: AccountingService;
  readonly #assembler: Assembler;
  readonly #clock: HandClock;

  constructor(keeper: AccountingService, clock: HandClock) {
    this.keeper = keeper;
    this.#clock = clock;
    this.#assembler = assembler(keeper, [{ device: gpu('g0'), readAtMs: clock.now() }]);
  }

  static async start(clock: HandClock, log: Logger = new Log()): Promise<Agent> {
    clock.restart();
    return new Agent(await AccountingService.open(settings(), log, clock), clock);
  }

  refresh(joules: number, uid = 'uid-1', isHeld = true): Snapshot {
    const clock = this.#clock;
    const nowMs = clock.monotonic();
    const one = holds('g0', 'train');
    const snapshot = this.#assembler.assemble(
      {
        families: [
          { state: familyState('gpu'), latest: lookAt(listed([report(gpu('g0'), gpuReadings(0.5, joules, 1e9))]), clock.now(), nowMs) },
        ],
        podResources: podResources(isHeld ? [one] : [], { answeredAtMs: clock.now() }),
        checkpoint: [{ podUid: uid, container: one.container, resource: one.resource, deviceIds: [one.deviceId] }],
      },
      { nowMs: clock.now(), monotonicMs: nowMs },
    );
    this.keeper.published(snapshot);
    return snapshot;
  }

  /** The account as the metrics page shows it. */
  shown(snapshot?: Snapshot): ContainerUsage | undefined {
    return this.keeper.shown(snapshot?.usage)?.containers[0];
  }
}

type Sections = Readonly<Record<string, Readonly<Record<string, object>>>>;

/** The text of a file with another state and a valid checksum. */
function changed(text: string, change: (state: Sections) => unknown): string {
  const [header = '', line = ''] = text.split('\n');
  const body = JSON.stringify(change(JSON.parse(line.slice(line.indexOf(' '))) as Sections));
  return `${header}\n${crc32(body, crc32(header)).toString(16).padStart(8, '0')} ${body}\n`;
}

const account = ({ containers }: Sections): object => Object.values(containers ?? {})[0] ?? {};
const many = <T>(count: number, value: T): readonly (readonly [string, T])[] => Array.from({ length: count }, (_, n) => [String(n), value]);

const counterOf = (account: ContainerUsage | undefined): number =>
  Number(account?.counters?.find(({ metric }) => metric === 'device_energy_joules_total')?.value ?? 0);

const FIELDS = ['allocatedSeconds', 'shareSeconds', 'idleSeconds', 'unobservedSeconds', 'energyJoules', 'memoryByteSeconds'] as const;

function fallen(before: ContainerUsage | undefined, now: ContainerUsage | undefined): string[] {
  const totals = (one: ContainerUsage | undefined): [string, number][] => [
    ...FIELDS.map((field): [string, number] => [field, one?.isNew === true ? 0 : (one?.[field] ?? 0)]),
    ['busy', one?.isNew === true ? 0 : (one?.busySeconds.gpu ?? 0)],
  ];
  const [old, latest] = [new Map(totals(before)), new Map(totals(now))];
  return [...old].filter(([field, value]) => (latest.get(field) ?? 0) < value - 1e-9).map(([field]) => field);
}

describe('the accounts of an agent', () => {
  it('are written once while no container holds a device', async () => {
    const clock = new HandClock();
    const agent = await Agent.start(clock);
    const textAfter = async (isHeld: boolean): Promise<string> => {
      clock.pass(INTERVAL);
      agent.refresh(1_000, 'uid-1', isHeld);
      await agent.keeper.save();
      return readFileSync(path(), 'utf8');
    };
    const empty = await textAfter(false);
    expect(await textAfter(false)).toBe(empty);
    expect(await textAfter(true)).toContain('uid-1');
  });

  it('lose at most one interval by each of 50 kills in a busy hour, and no counter on the page falls', async () => {
    const pick = seeded(7);
    const clock = new HandClock();
    let agent = await Agent.start(clock);
    let [joules, turns, kills] = [1_000, 0, 0];
    let lastShown: ContainerUsage | undefined;
    const beginMs = clock.atMs;
    while (clock.atMs - beginMs < HOUR) {
      clock.pass(INTERVAL);
      joules += 4_000;
      const snapshot = agent.refresh(joules);
      const live = snapshot.usage?.containers[0];
      // What a scraper sees before and after the write.
      const see = (): void => {
        const now = agent.shown(snapshot);
        expect(fallen(lastShown, now), `after ${kills} kills`).toEqual([]);
        expect(counterOf(now), 'the counter of the container').toBeGreaterThanOrEqual(counterOf(lastShown));
        lastShown = now;
      };
      see();
      turns += 1;
      const mayDie = kills < 50 && turns % 6 === 0;
      // Killed before the write, or after it.
      if (!mayDie || pick(2) === 0) {
        clock.pass(200);
        await agent.keeper.save();
        see();
      }
      if (!mayDie) continue;
      kills += 1;
      const gapMs = 500 + pick(2_000);
      // A killed process writes nothing more.
      clock.restart();
      clock.pass(gapMs);
      joules += 400;
      const log = new Log();
      agent = await Agent.start(clock, log);
      expect(log.lines).toEqual([]);
      const restored = agent.keeper.accounts.usage().containers[0];
      const lost = (live?.allocatedSeconds ?? 0) - (restored?.allocatedSeconds ?? 0);
      expect(lost).toBeLessThan((INTERVAL + 201) / 1_000);
      lastShown = agent.shown();
    }
    expect(kills).toBe(50);
    expect(lastShown?.busySeconds.gpu).toBeGreaterThan(900);
  });

  it.each([
    ['a reboot', true],
    ['a boot without an identity that can be read', false],
  ])('end at their last step with %s, and others begin: no counter of the hardware goes on over it', async (_, hasIdentity) => {
    if (!hasIdentity) rmSync(join(folder, 'proc/sys/kernel/random/boot_id'));
    const clock = new HandClock();
    const agent = await Agent.start(clock);
    for (let turn = 0; turn < 60; turn += 1) {
      agent.refresh(1_000 * turn);
      clock.pass(INTERVAL);
    }
    await agent.keeper.close();
    const [before] = agent.keeper.accounts.usage().containers;
    const endedAtMs = clock.now() - INTERVAL;
    // Off for an hour. The driver's counter begins again; the new boot is already older than the one before was.
    clock.wallMs += HOUR;
    clock.atMs += 60_000;
    if (hasIdentity) boot(folder, 'second');
    const next = await Agent.start(clock);
    expect(next.shown()).toEqual({ ...before, endedAtMs });
    next.refresh(7);
    clock.pass(INTERVAL);
    expect(next.refresh(1_007).usage?.containers).toMatchObject([
      { uid: 'uid-1', allocatedSeconds: 10, energyJoules: 1_000, isNew: true },
      { uid: 'uid-1', allocatedSeconds: 590, energyJoules: 59_000, endedAtMs },
    ]);
  });

  it('end at the save when another pod of the name holds the device after the restart', async () => {
    const clock = new HandClock();
    const agent = await Agent.start(clock);
    for (let turn = 0; turn < 30; turn += 1) {
      clock.pass(INTERVAL);
      agent.refresh(1_000 * turn);
    }
    const endedAtMs = clock.now();
    await agent.keeper.close();
    clock.pass(30_000);
    const next = await Agent.start(clock);
    expect(next.refresh(99_000, 'uid-2').usage?.containers).toMatchObject([
      { uid: 'uid-2', allocatedSeconds: 0, isNew: true },
      { uid: 'uid-1', endedAtMs, energyJoules: 29_000 },
    ]);
  });

  it('tell a disk that takes nothing once, go on in memory, and tell once that it takes them again', async () => {
    const clock = new HandClock();
    const log = new Log();
    writeFileSync(join(folder, 'state'), 'a file where the directory should be');
    const agent = await Agent.start(clock, log);
    let snapshot = agent.refresh(0);
    for (let turn = 1; turn <= 12; turn += 1) {
      clock.pass(INTERVAL);
      snapshot = agent.refresh(1_000 * turn);
      await agent.keeper.save();
    }
    expect(log.lines).toHaveLength(1);
    expect(log.lines[0]).toMatch(/^warn the usage of devices cannot be saved.*ENOTDIR/);
    expect(agent.shown(snapshot)?.allocatedSeconds).toBe(120);
    unlinkSync(join(folder, 'state'));
    for (let turn = 0; turn < 3; turn += 1) await agent.keeper.save();
    expect(agent.shown(snapshot)).toEqual(snapshot.usage?.containers[0]);
    expect(log.lines.slice(1)).toEqual(['info the usage of devices could not be saved; it is saved again']);
    expect(existsSync(path())).toBe(true);
  });

  it.each([
    ['damaged', (text: string) => text.replace(/.(.)\n$/, 'x$1\n')],
    ['other-version', (text: string) => text.replace('"version":5', '"version":6')],
    ['damaged', () => 'no state'],
    ['too-large', (text: string) => text + 'x'.repeat(64 * 1024 * 1024)],
    ['damaged', (text: string) => changed(text, () => null)],
    ['damaged', (text: string) => changed(text, (state) => ({ ...state, containers: { a: 1 } }))],
    ['damaged', (text: string) => changed(text, (state) => ({ ...state, containers: Object.fromEntries(many(60_000, account(state))) }))],
    ['damaged', (text: string) => changed(text, (state) => ({ ...state, containers: { a: { ...account(state), ageMs: -1e9 } } }))],
    ['damaged', (text: string) => changed(text, (state) => ({ ...state, containers: { a: { ...account(state), usage: {} } } }))],
    ['damaged', (text: string) => changed(text, (state) => ({ ...state, times: { savedAtMs: 1e300, sinceBootMs: 0 } }))],
  ])('start at 0 with a %s file, which is told and kept', async (reason, spoil) => {
    const clock = new HandClock();
    const agent = await Agent.start(clock);
    for (let turn = 0; turn < 3; turn += 1) {
      clock.pass(INTERVAL);
      agent.refresh(0);
    }
    await agent.keeper.close();
    const spoilt = spoil(readFileSync(path(), 'utf8'));
    writeFileSync(path(), spoilt);
    const log = new Log();
    const next = await Agent.start(clock, log);
    expect(next.keeper.accounts.usage()).toEqual({ containers: [], devices: [] });
    expect(log.lines).toHaveLength(1);
    expect(log.lines[0]).toContain(`"reason":"${reason}"`);
    expect(readFileSync(`${path()}.unused`, 'utf8')).toBe(spoilt);
    next.refresh(0);
    await next.keeper.close();
    expect(existsSync(path())).toBe(true);
  });
});
