import { policyDigest } from '../../../src/agent/health.ts';
import { createHealthEngine, type HealthEngine } from '../../../src/health/engine/engine.ts';
import type { HealthInput } from '../../../src/health/engine/judge-device.ts';
import type { HealthMemory } from '../../../src/health/engine/memory.ts';
import { FindingsJournal } from '../../../src/health/journal/findings-journal.ts';
import { createFindingsLog } from '../../../src/health/journal/findings-log.ts';
import { createPolicy, type HealthPolicy } from '../../../src/health/policy/policy.ts';
import type { HealthConfig } from '../../../src/health/policy/policy-config.ts';
import type { Clock } from '../../../src/host/clock.ts';
import type { LineLog } from '../../../src/host/fs/line-log.ts';
import type { Allocation } from '../../../src/model/allocation.ts';
import type { Device } from '../../../src/model/device.ts';
import type { HealthEvent } from '../../../src/model/events.ts';
import type { Finding } from '../../../src/model/health.ts';
import { family as infiniband } from '../../../src/probes/infiniband/index.ts';
import { family as nvidia } from '../../../src/probes/nvidia/index.ts';
import { seeded } from '../../support/seeded.ts';

export const WEEK = Date.parse('2024-01-01T00:00:00Z');
export const DAY = 86_400_000;
const HOUR = 3_600_000;
const MINUTE = 60_000;
const REFRESH_MS = 30_000;

/** Wall clock of the week: day 0 is Monday. */
export const at = (day: number, hour: number, minute = 0, second = 0): number =>
  WEEK + day * DAY + hour * HOUR + minute * MINUTE + second * 1_000;

const SPECS = { infiniband: infiniband.conditions, nvidia: nvidia.conditions };

export function policyFor(config: HealthConfig = {}): HealthPolicy {
  const { policy, problems } = createPolicy({ specs: SPECS, config });
  if (problems.length > 0) throw new Error(problems.join('; '));
  return policy;
}

const MLX: Device = { family: 'infiniband', id: 'mlx5_0', kind: 'pf', aliases: ['0000:01:00.0'], pciAddress: '0000:01:00.0' };
const SPARE: Device = { family: 'infiniband', id: 'mlx5_1', kind: 'pf', aliases: ['0000:02:00.0'], pciAddress: '0000:02:00.0' };
const GPU0: Device = { family: 'nvidia', id: 'GPU-0', kind: 'gpu', aliases: ['0'], uuid: 'GPU-0' };
const GPU1: Device = { family: 'nvidia', id: 'GPU-1', kind: 'gpu', aliases: ['1'], uuid: 'GPU-1' };

const within = (nowMs: number, fromMs: number, toMs: number): boolean => nowMs >= fromMs && nowMs < toMs;

const holds = (type: string, status: boolean, instance?: string): Finding => ({
  type,
  ...(instance === undefined ? {} : { instance }),
  reason: 'Scripted',
  message: `${type} is ${status}`,
  status,
});
const count = (type: string, value: number): Finding => ({ type, reason: 'Scripted', message: `${type} is at ${value}`, count: value });

/** The port is down for one minute at 10:00, 11:00 and 12:00 of day 0, and for 20 seconds at 10:00 of day 6. */
function portFindings(nowMs: number): readonly Finding[] {
  const isDown = [10, 11, 12].some((hour) => within(nowMs, at(0, hour), at(0, hour, 1))) || within(nowMs, at(6, 10), at(6, 10, 0, 20));
  return [holds('PortDown', isDown, '1'), count('SymbolErrors', 7)];
}

/** The GPU is hot from 9:00 to 9:10 of day 1. The driver tells of Xid 94 at 12:00 of day 4, until the reboot. */
function gpuFindings(nowMs: number): readonly Finding[] {
  return [
    holds('OverTemperature', within(nowMs, at(1, 9), at(1, 9, 10))),
    { type: 'PcieLinkDegraded', reason: 'Scripted', message: '', level: 16 },
  ];
}

const xids = (nowMs: number): readonly Finding[] => (within(nowMs, at(4, 12), REBOOT_FROM) ? [holds('Xid', true, '94')] : []);

/** The counter grows by 2 each minute from 12:00 to 12:20 of day 2. */
const errors = (nowMs: number): number => 2 * Math.floor(Math.max(0, Math.min(nowMs, at(2, 12, 20)) - at(2, 12)) / MINUTE);

/** No probe of the second GPU ends from 8:00 to 8:30 of day 3. */
const isHung = (nowMs: number): boolean => within(nowMs, at(3, 8), at(3, 8, 30));

/** The agent restarts at 6:00 of day 4, and the machine at 0:30 of day 5. */
export const RESTART = { from: at(4, 6), to: at(4, 6, 5) };
const REBOOT_FROM = at(5, 0, 30);
export const REBOOT = { from: REBOOT_FROM, to: at(5, 0, 40) };

export const pod = (name: string, deviceId: string): Allocation => ({
  namespace: 'train',
  pod: name,
  container: 'main',
  resource: 'vendor.example/card',
  deviceId,
  numaNodes: [],
});
/** The first pod ends at 11:30 of day 0; the second follows it. */
const holdersOf = (nowMs: number, id: string): readonly Allocation[] => [pod(nowMs < at(0, 11, 30) ? 'first' : 'second', id)];

export interface RecordedWeek {
  readonly events: readonly HealthEvent[];
  readonly log: LineLog;
  readonly endMs: number;
}

export interface WeekOptions {
  readonly directory: string;
  readonly policy: HealthPolicy;
  readonly untilMs?: number;
  /** Called before each judgement; sets the wall clock forward. */
  readonly wallStep?: (nowMs: number) => number;
}

/** Drives the real engine and the real journal through a scripted week. Judgements have uneven times, as real ones. */
export async function recordWeek({ directory, policy, untilMs = WEEK + 7 * DAY, wallStep = () => 0 }: WeekOptions): Promise<RecordedWeek> {
  const random = seeded(7);
  let nowMs = WEEK;
  let stepMs = 0;
  const clock: Clock = { now: () => nowMs + stepMs, monotonic: () => nowMs - WEEK, after: () => () => {} };
  const log = createFindingsLog({ stateFile: `${directory}/health.json`, keepDays: 30, keepMib: 32, clock });
  const digest = policyDigest(policy);
  const events: HealthEvent[] = [];
  const reads = new Map<string, { readonly atMs: number; readonly monotonicMs: number; readonly truthMs: number }>();
  let begunMs = 0;
  let engine!: HealthEngine;
  let journal!: FindingsJournal;
  const begin = (state?: HealthMemory): void => {
    engine = createHealthEngine({ policy, ...(state === undefined ? {} : { state }) });
    journal = new FindingsJournal({
      log,
      isFresh: state === undefined,
      pictureEvery: 1_000_000,
      memory: () => engine.memory(),
      written: (error) => {
        if (error !== undefined) throw new Error(error);
      },
    });
    reads.clear();
    begunMs = nowMs;
  };
  const judged = (
    device: Device,
    isUnread: boolean,
    findings: (ms: number) => readonly Finding[],
    outOfBand?: readonly Finding[],
  ): HealthInput => {
    const key = `${device.family}/${device.id}`;
    const last = reads.get(key);
    const latest = reads.get(device.family);
    return {
      key,
      device,
      ...(last === undefined ? {} : { read: { findings: findings(last.truthMs), readAtMs: last.atMs, monotonicMs: last.monotonicMs } }),
      ...(outOfBand === undefined || latest === undefined
        ? {}
        : { outOfBand: { findings: outOfBand, readAtMs: latest.atMs, monotonicMs: latest.monotonicMs } }),
      ...(isUnread ? { isUnread } : {}),
      ...(last === undefined && begunMs === RESTART.to ? { awaitedSinceMs: begunMs } : {}),
      holders: holdersOf(nowMs, device.id),
    };
  };
  const judge = (): number => {
    stepMs += wallStep(nowMs);
    const devices = [
      judged(MLX, false, portFindings),
      judged(SPARE, false, () => [holds('PortDown', false, '1')]),
      judged(GPU0, false, gpuFindings, xids(nowMs)),
      judged(GPU1, isHung(nowMs), (ms) => [count('AerNonfatal', errors(ms))]),
    ];
    const moment = { nowMs: nowMs + stepMs, monotonicMs: nowMs - WEEK };
    const judgement = engine.judge({ devices, monotonicMs: moment.monotonicMs }, moment.nowMs);
    engine.announce();
    journal.judged(devices, moment, judgement.events, digest);
    events.push(...judgement.events);
    return judgement.nextCheckMs === undefined ? Number.POSITIVE_INFINITY : judgement.nextCheckMs - stepMs;
  };
  const read = (readMs: number): void => {
    for (const device of [MLX, SPARE, GPU0, GPU1]) {
      if (device === GPU1 && isHung(nowMs)) continue;
      const times = { atMs: readMs + stepMs, monotonicMs: readMs - WEEK, truthMs: readMs };
      reads.set(`${device.family}/${device.id}`, times);
      reads.set(device.family, times);
    }
  };
  const pause = async (toMs: number, keeps: boolean): Promise<void> => {
    await journal.close();
    const state = JSON.parse(JSON.stringify(engine.state())) as HealthMemory;
    nowMs = toMs;
    begin(keeps ? state : undefined);
    // An agent that knows devices judges them before its first read.
    if (keeps) judge();
  };
  begin();
  for (let refresh = WEEK; refresh < untilMs; refresh += REFRESH_MS) {
    if (within(refresh, RESTART.from, RESTART.to) || within(refresh, REBOOT.from, REBOOT.to)) continue;
    if (refresh === RESTART.to) await pause(refresh, true);
    if (refresh === REBOOT.to) await pause(refresh, false);
    nowMs = refresh + 10 + random(30);
    read(refresh + 5);
    let dueMs = judge();
    // The agent's own timer fires a little late.
    while (dueMs + 3 < refresh + REFRESH_MS) {
      nowMs = Math.max(dueMs, nowMs) + 1 + random(2);
      dueMs = judge();
    }
    if (refresh % HOUR === 0) while (log.waiting > 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await journal.close();
  return { events, log, endMs: nowMs };
}
