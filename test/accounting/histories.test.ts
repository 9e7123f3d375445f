import { describe, expect, it } from 'vitest';
import type { Assembler, UsageDependencies } from '../../src/agent/assemble.ts';
import type { RestoredDevice } from '../../src/agent/known-devices.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { DeviceProcess, DeviceReport } from '../../src/model/collection.ts';
import type { Device } from '../../src/model/device.ts';
import type { Value } from '../../src/model/metric.ts';
import type { CheckpointEntry } from '../../src/model/pod-resources.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import type { ContainerUsage, DeviceUsage } from '../../src/model/usage.ts';
import type { TimedCollection } from '../../src/supervisor/family-runner.ts';
import { repetitions } from '../support/repetitions.ts';
import { type Choose, seeded } from '../support/seeded.ts';
import { familyState, listed, lookAt, podResources } from '../support/snapshots.ts';
import { assembler, DAY, gpu, gpuReadings, hca, hcaReadings, holds, report, savedText, usageParts } from './small-node.ts';

const HISTORIES = repetitions(80, 1_000);
const STEPS = 30;
const TINY = 1e-6;

/** What outputs have shown of one account, and what it has used in all. */
interface Books {
  /** Last usage of each account, also of accounts that are not told any more. */
  readonly containers: Map<string, ContainerUsage>;
  /** World time at which this agent began to count each device, what its containers had by then, and its last usage. */
  readonly devices: Map<string, { readonly fromMs: number; readonly shareSeconds: number; readonly usage: DeviceUsage }>;
  /** Last value of each counter of each account that alone holds its device. */
  readonly counters: Map<string, ReadonlyMap<string, Value>>;
}

const noBooks = (): Books => ({ containers: new Map(), devices: new Map(), counters: new Map() });

const copyOf = (books: Books): Books => ({
  containers: new Map(books.containers),
  // An agent counts devices from its start.
  devices: new Map(),
  counters: new Map(books.counters),
});

const idOf = ({ namespace, pod, container, resource, device, sinceMs }: ContainerUsage): string =>
  [namespace, pod, container, resource, device, sinceMs].join(' ');
const timeOf = ({ allocatedSeconds, unallocatedSeconds, unobservedSeconds }: DeviceUsage): number =>
  allocatedSeconds + unallocatedSeconds + unobservedSeconds;

const NEVER = (): boolean => false;
/** A GPU that `p0` holds is for all: each pod has a process on each GPU. */
const DELEGATION = { holders: ['*/p0'], ids: [] };

/** A node on which everything happens, and the agent that watches it. */
class History {
  readonly #pick: Choose;
  readonly devices = new Map<string, Device>([
    ['g0', gpu('g0', { uuid: 'u-g0' })],
    ['g1', gpu('g1', { uuid: 'u-g1' })],
    ['h0', hca('h0', { uuid: 'u-h0' })],
  ]);
  readonly counts = new Map<string, number>();
  readonly missing = new Set<string>();
  /** Allocations by pod, with the UID of the pod. */
  readonly pods = new Map<string, { uid: string; holds: readonly Allocation[] }>();
  #looks = new Map<string, TimedCollection>();
  #answer = podResources([]);
  #hasAnswered = false;
  #checkpoint: readonly CheckpointEntry[] = [];
  #uids = 0;
  /** Time of the world, which no clock steps change. */
  worldMs = 0;
  monotonicMs = 1_000;
  wallMs = Date.parse('2030-01-01T00:00:00Z');
  parts: UsageDependencies = usageParts();
  agent: Assembler = assembler(this.parts, [], NEVER, DELEGATION);
  saved: { readonly text: string; readonly worldMs: number; readonly wallMs: number; readonly books: Books } | undefined;
  books = noBooks();
  known: readonly RestoredDevice[] = [];
  lastMs = 0;

  constructor(pick: Choose) {
    this.#pick = pick;
  }

  pass(ms: number): void {
    this.worldMs += ms;
    this.monotonicMs += ms;
    this.wallMs += ms;
  }

  change(): void {
    const pick = this.#pick;
    const kind = pick(14);
    const ids = [...this.devices.keys()];
    const id = ids[pick(ids.length)] as string;
    const pod = `p${pick(4)}`;
    if (kind <= 3) {
      const part = id.startsWith('h') ? id : `${id}::${pick(3)}`;
      const isTaken = [...this.pods.values()].some((one) => one.holds.some(({ deviceId }) => deviceId === part));
      const before = this.pods.get(pod) ?? { uid: `uid-${++this.#uids}`, holds: [] };
      if (!isTaken) this.pods.set(pod, { ...before, holds: [...before.holds, holds(part, pod)] });
    } else if (kind <= 5) this.pods.delete(pod);
    else if (kind === 6) {
      const before = this.pods.get(pod);
      if (before !== undefined) this.pods.set(pod, { ...before, uid: `uid-${++this.#uids}` });
    } else if (kind === 7) {
      if (!this.missing.delete(id)) this.missing.add(id);
    } else if (kind === 8) {
      const before = this.devices.get(id) as Device;
      this.devices.set(id, { ...before, uuid: `u-${id}-${++this.#uids}` });
    } else if (kind === 9) this.counts.set(id, 0);
    else if (kind === 10) this.wallMs += (pick(2) === 0 ? 1 : -1) * DAY + pick(1_000);
  }

  look(): void {
    for (const family of ['gpu', 'hca']) {
      // Now and then the probe hangs, and nothing new comes.
      if (this.#pick(5) === 0) continue;
      const present = [...this.devices.values()].filter((one) => one.family === family && !this.missing.has(one.id));
      const startedMs = this.monotonicMs - 20 - this.#pick(50);
      const endedMs = this.monotonicMs - this.#pick(15);
      this.#looks.set(family, lookAt(listed(present.map((one) => this.#report(one))), this.wallMs, endedMs, startedMs));
    }
    if (this.#pick(5) === 0) return;
    this.#answer = podResources(
      [...this.pods.values()].flatMap((one) => one.holds),
      { answeredAtMs: this.wallMs, answeredMonotonicMs: this.monotonicMs },
    );
    this.#hasAnswered = true;
    this.#checkpoint = [...this.pods.values()].flatMap(({ uid, holds: held }) =>
      held.map(({ container, resource, deviceId }) => ({ podUid: uid, container, resource, deviceIds: [deviceId] })),
    );
    if (this.#pick(10) === 0) this.#checkpoint = [];
  }

  #report(one: Device): DeviceReport {
    const pick = this.#pick;
    const count = (this.counts.get(one.id) ?? 0) + pick(3) * pick(500_000);
    this.counts.set(one.id, count);
    if (one.family === 'hca') return report(one, hcaReadings(count, BigInt(count) * 3n));
    const processes = [...this.pods.values()].map(
      ({ uid }, index): DeviceProcess => ({
        pid: index,
        podUid: uid,
        memoryUsedBytes: 1_000 * pick(5),
        ...(pick(2) === 0 ? {} : { utilization: { gpu: pick(3) / 4 } }),
      }),
    );
    const readings = gpuReadings(pick(2) * (pick(10) / 10), count, 1_000 * pick(10));
    return report(one, pick(8) === 0 ? readings.slice(1) : readings, processes);
  }

  step(): Snapshot {
    return this.agent.assemble(
      {
        families: ['gpu', 'hca'].map((family) => ({ state: familyState(family), latest: this.#looks.get(family) })),
        podResources: this.#hasAnswered ? this.#answer : podResources([], { answeredAtMs: undefined as never }),
        checkpoint: this.#checkpoint,
      },
      { nowMs: this.wallMs, monotonicMs: this.monotonicMs },
    );
  }

  save(): void {
    this.saved = { text: savedText(this.parts), worldMs: this.worldMs, wallMs: this.wallMs, books: copyOf(this.books) };
  }

  /** The process is gone, and another one starts with what is on the disk. */
  restart(isReboot: boolean, downMs: number): void {
    this.pass(downMs);
    if (isReboot) {
      this.monotonicMs = 500 + this.#pick(10_000);
      for (const id of this.devices.keys()) this.counts.set(id, this.#pick(2) * this.#pick(5_000_000));
    }
    const { saved } = this;
    this.books = saved === undefined ? noBooks() : copyOf(saved.books);
    this.parts = usageParts(
      saved === undefined
        ? {}
        : {
            ...{ text: saved.text, savedAtMs: saved.wallMs, gapMs: this.worldMs - saved.worldMs },
            ...{ monotonicMs: this.monotonicMs, isSameBoot: !isReboot },
          },
    );
    this.agent = assembler(this.parts, isReboot ? [] : this.known, NEVER, DELEGATION);
    this.#looks = new Map();
    this.#hasAnswered = false;
    this.#checkpoint = [];
  }
}

const TOTALS = [
  'allocatedSeconds',
  'delegatedSeconds',
  'shareSeconds',
  'idleSeconds',
  'unobservedSeconds',
  'energyJoules',
  'energyEstimatedJoules',
  'memoryByteSeconds',
  'receivedBytes',
  'transmittedBytes',
] as const;

/** Everything that must be true of the next snapshot, whatever happened. */
function check(history: History, snapshot: Snapshot, problems: string[]): void {
  const { books } = history;
  const { containers = [], devices = [] } = snapshot.usage ?? {};
  const claim = (holds: boolean, what: string): void => {
    if (!holds) problems.push(what);
  };
  const told = new Set<string>();
  for (const usage of containers) {
    const id = idOf(usage);
    claim(!told.has(id), `${id} is told twice`);
    told.add(id);
    const before = books.containers.get(id);
    books.containers.set(id, usage);
    for (const field of TOTALS)
      claim((usage[field] ?? 0) >= (before?.[field] ?? 0), `${id} ${field} fell from ${before?.[field]} to ${usage[field]}`);
    for (const [engine, seconds] of Object.entries(before?.busySeconds ?? {})) {
      claim((usage.busySeconds[engine] ?? 0) >= seconds, `${id} busy ${engine} fell`);
    }
    for (const seconds of [0, ...Object.values(usage.busySeconds)]) {
      const used = seconds + usage.idleSeconds + usage.unobservedSeconds + (usage.delegatedSeconds ?? 0);
      claim(used <= usage.allocatedSeconds + TINY, `${id} used ${used} s of ${usage.allocatedSeconds} s`);
    }
    claim(before?.isNew === true || usage.isNew === undefined || before === undefined, `${id} is new again`);
    claim(before?.endedAtMs === undefined || usage.endedAtMs !== undefined, `${id} lives again`);
  }
  for (const usage of devices) {
    const { device } = usage;
    const own = [...books.containers.values()].filter((one) => one.device === device);
    const sum = own.reduce((total, { shareSeconds }) => total + shareSeconds, 0);
    const known = books.devices.get(device);
    // Other hardware under the name begins at 0.
    const before = known !== undefined && timeOf(usage) > 0 && timeOf(usage) >= timeOf(known.usage) ? known : undefined;
    const { fromMs, shareSeconds } = before ?? { fromMs: history.worldMs, shareSeconds: sum };
    books.devices.set(device, { fromMs, shareSeconds, usage });
    const seconds = (history.worldMs - fromMs) / 1_000;
    claim(Math.abs(timeOf(usage) - seconds) < TINY, `${device} has ${timeOf(usage)} s of ${seconds} s`);
    for (const field of ['allocatedSeconds', 'unallocatedSeconds', 'unhealthySeconds', 'unobservedSeconds'] as const) {
      claim(usage[field] >= (before?.usage[field] ?? 0), `${device} ${field} fell`);
    }
    const shares = sum - shareSeconds;
    claim(Math.abs(shares - usage.allocatedSeconds) < TINY, `${device}: shares of ${shares} s of ${usage.allocatedSeconds} s`);
  }
  const labels = containers.filter(({ endedAtMs }) => endedAtMs === undefined).map((usage) => idOf({ ...usage, sinceMs: 0 }));
  claim(new Set(labels).size === labels.length, 'two accounts that go on have the same labels');
}

/** The counters of an account never fall. */
function checkCounters({ books }: History, { usage }: Snapshot, problems: string[]): void {
  for (const account of usage?.containers ?? []) {
    const id = idOf(account);
    const before = books.counters.get(id);
    const now = new Map((account.counters ?? []).map(({ metric, value }) => [metric, value]));
    for (const [metric, value] of before ?? []) {
      if ((now.get(metric) ?? -1) < value) problems.push(`${id} ${metric} fell from ${value} to ${now.get(metric)}`);
    }
    books.counters.set(id, now);
  }
}

interface Seen {
  steps: number;
  kills: number;
  reboots: number;
  ends: number;
  shared: number;
  busy: number;
  idle: number;
  users: number;
  delegated: number;
}

function live(seed: number, seen: Seen): readonly string[] {
  const pick = seeded(seed);
  const history = new History(pick);
  const problems: string[] = [];
  for (let turn = 0; turn < STEPS; turn += 1) {
    history.lastMs = [10_000, 10_000, 10_000, 10_000 + pick(5_000), pick(100), 0, 59_000, 70_000 + pick(200_000)][pick(8)] as number;
    history.pass(history.lastMs);
    // The wall clock drifts, so that no two accounts begin at the same time.
    history.wallMs += 1;
    if (pick(2) === 0) history.change();
    if (pick(6) > 0) history.look();
    const snapshot = history.step();
    check(history, snapshot, problems);
    checkCounters(history, snapshot, problems);
    if (problems.length > 0) return problems.map((text) => `seed ${seed}, turn ${turn}: ${text}`);
    seen.steps += 1;
    seen.ends += snapshot.usage?.containers.filter(({ endedAtMs }) => endedAtMs !== undefined).length ?? 0;
    seen.shared += snapshot.usage?.containers.filter(({ energyEstimatedJoules }) => energyEstimatedJoules !== undefined).length ?? 0;
    seen.busy += snapshot.usage?.containers.filter(({ busySeconds }) => Object.values(busySeconds).some((one) => one > 0)).length ?? 0;
    seen.users += snapshot.usage?.containers.filter(({ container }) => container === '').length ?? 0;
    seen.delegated += snapshot.usage?.containers.filter(({ delegatedSeconds = 0 }) => delegatedSeconds > 0).length ?? 0;
    seen.idle += snapshot.usage?.containers.filter(({ idleSeconds }) => idleSeconds > 0).length ?? 0;
    history.known = snapshot.devices.map(({ device, readAtMs }) => ({ device, readAtMs }));
    // The process may be killed before the accounts of this step are on the disk.
    const isKilled = pick(6) === 0;
    if (!isKilled || pick(5) > 0) history.save();
    if (!isKilled) continue;
    const before = new Map((snapshot.usage?.containers ?? []).map((usage) => [idOf(usage), usage.allocatedSeconds]));
    const isReboot = pick(4) === 0;
    history.restart(isReboot, pick(2) === 0 ? pick(20_000) : pick(10 * 60_000));
    seen.kills += 1;
    seen.reboots += isReboot ? 1 : 0;
    const after = new Map(history.parts.accounts.usage().containers.map((usage) => [idOf(usage), usage.allocatedSeconds]));
    for (const [id, seconds] of before) {
      const lost = seconds - (after.get(id) ?? 0);
      if (lost > history.lastMs / 1_000 + TINY) problems.push(`seed ${seed}, turn ${turn}: a kill lost ${lost} s of ${id}`);
    }
    if (problems.length > 0) return problems;
  }
  return problems;
}

describe('the accounts of a node', () => {
  it(`add up and never fall in ${HISTORIES} random histories`, () => {
    const seen: Seen = { steps: 0, kills: 0, reboots: 0, ends: 0, shared: 0, busy: 0, idle: 0, users: 0, delegated: 0 };
    for (let seed = 1; seed <= HISTORIES; seed += 1) expect(live(seed, seen)).toEqual([]);
    expect(seen.steps).toBe(HISTORIES * STEPS);
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(HISTORIES / 2);
  });
});
