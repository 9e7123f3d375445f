import { randomUUID } from 'node:crypto';
import type { LineLog } from '../../host/fs/line-log.ts';
import type { HealthEvent } from '../../model/events.ts';
import { HardwareKeys } from '../../model/hardware.ts';
import type { HealthInput } from '../engine/judge-device.ts';
import type { DeviceMemory } from '../engine/memory.ts';
import { deviceChange, type WrittenDevice } from './findings-change.ts';
import type { DeviceChange, FindingsRecord, Tick } from './findings-record.ts';
import { type ClockTime, ReadingClocks } from './reading-clocks.ts';

/** A smaller difference between the clocks is drift. */
const CLOCK_STEP_MS = 1_000;
/** Longest time without a record while the agent runs. */
const HEARTBEAT_MS = 600_000;
const DAY_MS = 86_400_000;
/** One record with all devices could be longer than a line may be. */
const DEVICES_PER_RECORD = 16;

export interface FindingsJournalOptions {
  readonly log: Pick<LineLog, 'append' | 'dropped'>;
  /** The run began without the memory of an earlier one. */
  readonly isFresh: boolean;
  /** Characters after which a full picture is due, so that each file of the log has one. */
  readonly pictureEvery: number;
  /** What the engine remembers of the devices now, keyed by hardware. */
  memory(): Readonly<Record<string, DeviceMemory>>;
  /** Called after each write with the error, or with undefined when it succeeded. */
  written(error: string | undefined): void;
}

export interface JudgedMoment {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/**
 * Writes down what the engine is told, so that another policy can be tried on it later. A judgement that brings nothing new costs a few
 * numbers, which wait for the next record. Nothing here waits for the disk.
 */
export class FindingsJournal {
  readonly #options: FindingsJournalOptions;
  readonly #run = randomUUID().slice(0, 8);
  readonly #clocks = new ReadingClocks();
  #seq = 0;
  #written: ReadonlyMap<string, WrittenDevice> = new Map();
  #before: JudgedMoment | undefined;
  #stepsMs = 0;
  /** Judgements without a record. */
  #ticks: Tick[] = [];
  #ticksAtMs = 0;
  #sinceTickMs = 0;
  #recordedAtMs = 0;
  #clocksTold = 0;
  #policy = '';
  #pictureDay = -1;
  #sincePicture = 0;
  #dropped = 0;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(options: FindingsJournalOptions) {
    this.#options = options;
  }

  /** Must be called after each judgement, with its input. `policy`: digest of the policy that judged. */
  judged(devices: readonly HealthInput[], moment: JudgedMoment, events: readonly HealthEvent[], policy: string): void {
    const { nowMs } = moment;
    const step = this.#stepBefore(moment);
    if (step !== 0) this.#flush();
    this.#stepsMs += step;
    const time: ClockTime = { ...moment, stepsMs: this.#stepsMs };
    const moved = this.#clocks.advance(devices, time);
    this.#sinceTickMs += this.#before === undefined ? 0 : nowMs - step - this.#before.nowMs;
    this.#before = moment;
    const now = new Map(devices.map((input): [string, WrittenDevice] => [input.key, { input, fixed: this.#clocks.fixed(input, time) }]));
    const isPicture = this.#isPictureDue(nowMs);
    const changes = isPicture ? {} : this.#changes(now);
    this.#written = now;
    const isNews = Object.keys(changes).length > 0 || events.length > 0 || policy !== this.#policy || step !== 0;
    // A judgement without a new reading and without a change has no effect.
    if (moved.length > 0 || isPicture || isNews) this.#tick(nowMs, moved);
    if (!isPicture && !isNews && nowMs - this.#recordedAtMs < HEARTBEAT_MS) return;
    const news = {
      ...(step === 0 ? {} : { step }),
      ...(events.length === 0 ? {} : { events: events.map(eventOf) }),
      ...(policy === this.#policy && !isPicture ? {} : { policy }),
    };
    this.#policy = policy;
    if (isPicture) this.#writePicture(now, news);
    else this.#write([{ ...this.#record(), ...news, ...(Object.keys(changes).length === 0 ? {} : { devices: changes }) }]);
  }

  /** Writes the end of the run. Resolves when it is on disk, or when the disk has failed. */
  async close(): Promise<void> {
    if (this.#before !== undefined) this.#write([{ ...this.#record(), end: true }]);
    await this.#writing;
  }

  #tick(nowMs: number, moved: readonly number[]): void {
    this.#ticks.push([this.#sinceTickMs, ...moved]);
    this.#sinceTickMs = 0;
    this.#ticksAtMs = nowMs;
  }

  #stepBefore({ nowMs, monotonicMs }: JudgedMoment): number {
    if (this.#before === undefined) return 0;
    const stepMs = nowMs - this.#before.nowMs - (monotonicMs - this.#before.monotonicMs);
    return Math.abs(stepMs) > CLOCK_STEP_MS ? Math.round(stepMs) : 0;
  }

  #changes(now: ReadonlyMap<string, WrittenDevice>): Record<string, DeviceChange | null> {
    const changes: Record<string, DeviceChange | null> = {};
    for (const [key, device] of now) {
      const change = deviceChange(this.#written.get(key), device);
      if (change !== undefined) changes[key] = change;
    }
    for (const key of this.#written.keys()) if (!now.has(key)) changes[key] = null;
    return changes;
  }

  /** A record was lost, the day is another one, or much was written since the last picture. */
  #isPictureDue(nowMs: number): boolean {
    const { log, pictureEvery } = this.#options;
    const isDue = log.dropped !== this.#dropped || Math.floor(nowMs / DAY_MS) !== this.#pictureDay || this.#sincePicture >= pictureEvery;
    this.#dropped = log.dropped;
    return isDue;
  }

  #writePicture(devices: ReadonlyMap<string, WrittenDevice>, news: Partial<FindingsRecord>): void {
    const memory = this.#options.memory();
    const keys = new HardwareKeys([...devices.values()].map(({ input }) => input.device));
    const full = [...devices].map(([key, device]): [string, DeviceChange] => {
      const { device: _, ...remembered } = memory[keys.of(device.input.device)] ?? {};
      return [key, { ...deviceChange(undefined, device), memory: remembered as Omit<DeviceMemory, 'device'> }];
    });
    const of = Math.max(1, Math.ceil(full.length / DEVICES_PER_RECORD));
    const parts = Array.from({ length: of }, (_, part): FindingsRecord => {
      const some = Object.fromEntries(full.slice(part * DEVICES_PER_RECORD, (part + 1) * DEVICES_PER_RECORD));
      const first = part === 0 ? { ...news, clocks: this.#clocks.names } : {};
      return { ...this.#record(), ...first, picture: { part, of }, devices: some };
    });
    this.#pictureDay = Math.floor(this.#ticksAtMs / DAY_MS);
    this.#write(parts);
    this.#sincePicture = 0;
  }

  /** Writes the waiting judgements, before the wall clock becomes another one. */
  #flush(): void {
    if (this.#ticks.length > 0) this.#write([this.#record()]);
  }

  #record(): FindingsRecord {
    const { names } = this.#clocks;
    const record: FindingsRecord = {
      run: this.#run,
      seq: this.#seq,
      at: this.#ticksAtMs,
      ...(this.#seq === 0 ? { fresh: this.#options.isFresh } : {}),
      ticks: this.#ticks,
      ...(names.length === this.#clocksTold ? {} : { clocks: names }),
    };
    this.#seq += 1;
    this.#ticks = [];
    this.#clocksTold = names.length;
    this.#recordedAtMs = this.#ticksAtMs;
    return record;
  }

  #write(records: readonly FindingsRecord[]): void {
    this.#sincePicture += records.reduce((sum, record) => sum + sizeOf(record), 0);
    this.#writing = this.#options.log.append(records).then((error) => this.#options.written(error));
  }
}

/** The log makes the text itself, so this is an estimate: most of a record's size is in its judgements or its devices. */
function sizeOf({ ticks, devices }: FindingsRecord): number {
  return 100 + ticks.length * 15 + (devices === undefined ? 0 : JSON.stringify(devices).length);
}

function eventOf({ device, transition, condition, instance, from, to }: HealthEvent): NonNullable<FindingsRecord['events']>[number] {
  return {
    device,
    transition,
    ...(condition === undefined ? {} : { condition }),
    ...(instance === undefined ? {} : { instance }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  };
}
