// Project: programs. Histories in number.
import { rmSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import type { DeviceReport } from '../../src/model/collection.ts';
import { folderInMemory } from '../support/folder-in-memory.ts';
import { type Choose, seeded } from '../support/seeded.ts';
import { accountsIn, boot, DiskAgent, HandClock, settingsIn } from './disk-agent.ts';
import { DAY, hca, hcaReadings, holds, report } from './small-node.ts';

/** `USAGE_DAY=full`: a whole day with refreshes of 1 s and of 10 s. */
const IS_FULL = process.env.USAGE_DAY === 'full';
const RUNS = IS_FULL
  ? [
      { interval: 10_000, lengthMs: DAY, handOvers: 2_000, kills: 60 },
      { interval: 1_000, lengthMs: DAY, handOvers: 2_000, kills: 60 },
    ]
  : [
      { interval: 10_000, lengthMs: DAY / 12, handOvers: 160, kills: 12 },
      { interval: 1_000, lengthMs: DAY / 72, handOvers: 40, kills: 12 },
    ];
const DEVICES = ['h0', 'h1', 'h2', 'h3'] as const;

interface Pod {
  readonly name: string;
  readonly uid: string;
}

/** What the agent must know of the holder of a device: whose bytes it counts, from which value to which. */
interface Known {
  readonly pod: Pod;
  seenAtMs: number | undefined;
  base?: number;
  last?: number;
}

interface Place {
  holder: Pod | undefined;
  /** The holder before, whose UID a late checkpoint names. */
  before: Pod | undefined;
  bytes: number;
  dueMs: number;
}

let folder = '';
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Pods come and go on four devices, and the agent that watches them is killed again and again. */
class PodsDay {
  readonly #pick: Choose;
  readonly #clock = new HandClock();
  readonly #settings: ReturnType<typeof settingsIn>;
  readonly #run: (typeof RUNS)[number];
  readonly #places = new Map<string, Place>();
  readonly pods: Pod[] = [];
  moved = 0;
  kills = 0;
  handOvers = 0;
  refreshes = 0;
  flickers = 0;
  #known = new Map<string, Known>();
  #bytesOf = new Map<string, number>();
  #saved = { known: new Map<string, Known>(), bytesOf: new Map<string, number>() };
  #shown = new Map<string, number>();
  #agent: DiskAgent | undefined;
  readonly fallen: string[] = [];

  constructor(run: (typeof RUNS)[number], seed: number) {
    folder = folderInMemory('device-agent-usage-');
    boot(folder, 'first');
    // The ledger deletes files by their age, which the system gives.
    this.#clock.wallMs = Date.now();
    this.#run = run;
    this.#pick = seeded(seed);
    this.#settings = settingsIn(folder, run.interval);
    for (const id of DEVICES) this.#places.set(id, { holder: undefined, before: undefined, bytes: this.#pick(1e9), dueMs: 0 });
  }

  async live(): Promise<void> {
    const { interval, lengthMs, kills } = this.#run;
    const [clock, pick] = [this.#clock, this.#pick];
    const beginMs = clock.atMs;
    await this.#start();
    while (clock.atMs - beginMs < lengthMs) {
      const mayDie = this.kills < kills && (clock.atMs - beginMs) / lengthMs > this.kills / kills;
      const death = mayDie ? pick(3) : undefined;
      const isWriting = this.#refresh();
      // A write that has begun would end after the kill, in a process that goes on here.
      if (death !== 0 || isWriting) await this.#save(death === 1);
      if (death === undefined) this.#pass(interval - 130);
      else {
        this.kills += 1;
        // A killed process writes nothing more.
        this.#clock.restart();
        this.#pass(pick(8) === 0 ? 600_000 : 500 + pick(20_000));
        await this.#start();
      }
    }
    await this.#save(false);
    await this.#agent?.ledger.close();
  }

  /** Accounts in the ledger, and what each must have. */
  async result(): Promise<{
    readonly ledger: ReadonlyMap<string, number>;
    readonly rows: number;
    readonly expected: ReadonlyMap<string, number>;
  }> {
    const accounts = await accountsIn(this.#settings, this.#clock);
    // A pod that went while no agent ran, and whose UID a late checkpoint never told, has only its name.
    const uidOf = (pod: string): string | undefined => this.pods.find(({ name }) => name === pod)?.uid;
    const ledger = new Map(accounts.map(({ pod, uid, receivedBytes = 0 }) => [`${pod} ${uid ?? uidOf(pod)}`, Number(receivedBytes)]));
    return { ledger, rows: accounts.length, expected: this.#bytesOf };
  }

  async #start(): Promise<void> {
    this.#known = structuredClone(this.#saved.known);
    this.#bytesOf = new Map(this.#saved.bytesOf);
    for (const known of this.#known.values()) known.seenAtMs = undefined;
    this.#agent = await DiskAgent.start(this.#settings, this.#clock, this.#reports());
  }

  /** Time goes on. Data moves, and pods that are due hand their device over. */
  #pass(ms: number): void {
    const pick = this.#pick;
    this.#move();
    for (const [id, place] of this.#places) {
      const isSaved = place.holder === undefined || this.#saved.known.get(id)?.pod.uid === place.holder.uid;
      if (this.#clock.atMs < place.dueMs || !isSaved || this.handOvers >= this.#run.handOvers) continue;
      const { holder } = place;
      place.dueMs = this.#clock.atMs + pick((2 * DEVICES.length * this.#run.lengthMs) / this.#run.handOvers / 1.5);
      place.before = holder ?? place.before;
      if (holder !== undefined && pick(6) === 0) place.holder = undefined;
      else {
        const uid = `uid-${this.pods.length}`;
        place.holder = { name: holder !== undefined && pick(4) === 0 ? holder.name : `pod-${this.pods.length}`, uid };
        this.pods.push(place.holder);
        this.handOvers += 1;
      }
    }
    this.#move();
    this.#clock.pass(ms);
  }

  #move(): void {
    for (const place of this.#places.values()) {
      const bytes = this.#pick(3) * this.#pick(40_000_000);
      place.bytes += bytes;
      this.moved += bytes;
    }
  }

  #reports(): readonly DeviceReport[] {
    return [...this.#places].map(([id, { bytes }]) => report(hca(id), hcaReadings(bytes, 0)));
  }

  /** Returns whether the agent may have begun to write. */
  #refresh(): boolean {
    const agent = this.#agent as DiskAgent;
    this.refreshes += 1;
    this.#look();
    if (agent.awaited.size === 0) return false;
    this.#pass(100);
    this.#look();
    return true;
  }

  /** A read, and then the kubelet's answer with its checkpoint. */
  #look(): void {
    const [clock, pick] = [this.#clock, this.#pick];
    const reports = this.#reports();
    const [readAtMs, readFromMs] = [clock.atMs, clock.monotonic()];
    this.#pass(15);
    const held = [...this.#places].filter(([, { holder }]) => holder !== undefined);
    const lacking = pick(40) === 0 ? held[pick(held.length)]?.[0] : undefined;
    if (lacking !== undefined) this.flickers += 1;
    const present = held.filter(([id]) => id !== lacking);
    const isLate = pick(3) === 0;
    (this.#agent as DiskAgent).refresh({
      reports,
      readFromMs,
      holds: present.map(([id, { holder }]) => holds(id, (holder as Pod).name)),
      checkpoint: present.map(([id, { holder, before }]) => {
        const isNew = this.#known.get(id)?.pod.uid !== holder?.uid && before !== undefined && before.name !== holder?.name;
        const { container, resource } = holds(id, '');
        return { podUid: (isNew && isLate ? before : (holder as Pod)).uid, container, resource, deviceIds: [id] };
      }),
    });
    for (const [id, { holder }] of present) this.#keep(id, holder as Pod, readAtMs, reports);
    this.#see();
  }

  /** The rule on paper: what the counter shows from the first read that began when the pod was known, to the last read. */
  #keep(id: string, pod: Pod, readAtMs: number, reports: readonly DeviceReport[]): void {
    const before = this.#known.get(id);
    const known: Known = before?.pod.uid === pod.uid ? before : { pod, seenAtMs: undefined };
    this.#known.set(id, known);
    known.seenAtMs ??= this.#clock.atMs;
    if (known.base === undefined && readAtMs < known.seenAtMs) return;
    const value = Number([...(reports.find(({ device }) => device.id === id)?.read?.readings ?? [])][0]?.value);
    known.base ??= value;
    known.last = value;
    this.#bytesOf.set(`${pod.name} ${pod.uid}`, value - known.base);
  }

  async #save(isKilledBeforeLedger: boolean): Promise<void> {
    const agent = this.#agent as DiskAgent;
    if (isKilledBeforeLedger) agent.ledger.update = () => {};
    // The page must not be ahead of the disk, and so is looked at on both sides of the write.
    this.#pass(115);
    await agent.save();
    for (const { pod } of this.#known.values())
      this.#bytesOf.set(`${pod.name} ${pod.uid}`, this.#bytesOf.get(`${pod.name} ${pod.uid}`) ?? 0);
    this.#saved = { known: structuredClone(this.#known), bytesOf: new Map(this.#bytesOf) };
    this.#see();
  }

  /** A total on the page never falls while its labels and the UID of its account stay the same. */
  #see(): void {
    const agent = this.#agent as DiskAgent;
    // The account that goes on is on the page, or else the one that ended last.
    const accounts = [...(agent.keeper.shown(undefined)?.containers ?? [])].reverse();
    const goingOn = accounts.filter(({ endedAtMs }) => endedAtMs === undefined);
    const uids = new Map([...accounts.toReversed(), ...goingOn].map(({ pod, uid }) => [pod, uid]));
    for (const [series, value] of agent.totals()) {
      const pod = /pod="([^"]*)"/.exec(series)?.[1] as string;
      const isReused = this.pods.filter(({ name }) => name === pod).length > 1;
      if (isReused && uids.get(pod) === undefined) continue;
      const key = isReused ? `${series} ${uids.get(pod)}` : series;
      const before = this.#shown.get(key) ?? 0;
      if (value < before) this.fallen.push(`${key} from ${before} to ${value} after ${this.kills} kills`);
      this.#shown.set(key, value);
    }
  }
}

describe('a day of pods', () => {
  it.each(RUNS)('ends $handOvers pods in the ledger over $kills kills, with refreshes each $interval ms', async (run) => {
    const day = new PodsDay(run, run.interval);
    await day.live();
    const { ledger, rows, expected } = await day.result();
    const sum = (amounts: ReadonlyMap<string, number>): number => [...amounts.values()].reduce((all, bytes) => all + bytes, 0);
    const { pods, kills, handOvers, refreshes, flickers, moved } = day;
    if (IS_FULL) {
      const figures = { ...run, refreshes, flickers, rows, moved, accounts: sum(ledger), unattributed: moved - sum(ledger) };
      process.stdout.write(`${JSON.stringify(figures)}\n`);
    }
    expect(day.fallen).toEqual([]);
    expect([handOvers, kills]).toEqual([run.handOvers, run.kills]);
    expect(rows).toBe(pods.length);
    expect([...ledger].sort()).toEqual([...expected].sort());
    expect(sum(ledger)).toBeGreaterThan(moved / 4);
  });
});
