import assert from 'node:assert';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import type { Clock } from '../../src/host/clock.ts';
import { deviceDirectory, type Step, StepRecord } from '../../src/host/fs/step-record.ts';
import { createHost } from '../../src/host/host.ts';
import type { Collection, DeviceReport } from '../../src/model/collection.ts';
import type { ReadingList } from '../../src/model/readings.ts';
import type { DeviceFamily, Probe } from '../../src/probes/family.ts';
import type { ReadProcess } from '../../src/supervisor/isolated-reads.ts';
import type { ToWorker } from '../../src/supervisor/messages.ts';
import { CollectionReceiver, CollectionSender } from '../../src/supervisor/posted-collection.ts';
import { collectChecked, readAgainChecked } from '../../src/supervisor/probe-look.ts';
import type { ProbeThread, StartThread, ThreadContext, ThreadListener, ThreadSettings } from '../../src/supervisor/probe-thread.ts';
import { listed, plain } from '../support/snapshots.ts';
import type { OverlaidTree } from './overlaid-tree.ts';

/** Thrown by a read that would never return: the thread stays in that step. */
class Hang extends Error {
  readonly step: Step;
  constructor(step: Step) {
    super('hangs');
    this.step = step;
  }
}

/** Disturbances of all threads by the operating system. */
export interface Weather {
  /** No descriptor is left, so no file can be opened. */
  isOutOfDescriptors: boolean;
  /** The next run of a probe throws an error. */
  isToCrash: boolean;
}

/**
 * Simulates the threads and the read process in one thread, so that thousands of histories can run. Supervisor, probes, trees and commands
 * are real. A read of a FIFO does not block; the simulated thread stays in that step.
 */
export class InlineThreads {
  readonly weather: Weather = { isOutOfDescriptors: false, isToCrash: false };
  readonly isolated: InlineReads;
  readonly start: StartThread;
  readonly #tree: OverlaidTree;
  readonly #threads = new Set<InlineThread>();
  readonly #runs = new Set<Promise<void>>();
  readonly #commands = new Set<number>();

  constructor(tree: OverlaidTree, clock: Clock, families: readonly DeviceFamily[]) {
    this.#tree = tree;
    this.isolated = new InlineReads(tree);
    this.start = (settings, context, listener) => {
      const family = families.find(({ name }) => name === settings.family) as DeviceFamily;
      const thread = new InlineThread(
        settings,
        context,
        listener,
        { family, clock, tree, weather: this.weather, isolated: this.isolated, commands: this.#commands },
        (run) => {
          this.#runs.add(run);
          void run.finally(() => this.#runs.delete(run));
        },
      );
      this.#threads.add(thread);
      return thread;
    };
  }

  /** Runs in progress that do not hang. */
  get running(): readonly Promise<void>[] {
    return [...this.#runs];
  }

  /** True while a command only sleeps, so that its run ends only at the deadline. */
  get isCommandAsleep(): boolean {
    return [...this.#commands].some((pid) => {
      try {
        return /\(sleep\) S/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
      } catch {
        return false;
      }
    });
  }

  /** Continues the hanging steps whose files no longer hang. */
  release(): void {
    for (const thread of this.#threads) thread.release(this.#tree);
    this.isolated.releaseAll();
  }
}

/** Simulated read process. It detects a FIFO instead of blocking on it. */
export class InlineReads implements ReadProcess {
  readonly stuckProcesses = 0;
  readonly #tree: OverlaidTree;
  readonly #hung = new Map<string, string>();
  readonly #listeners = new Set<() => void>();

  constructor(tree: OverlaidTree) {
    this.#tree = tree;
  }

  get hungPaths(): readonly string[] {
    return [...this.#hung.values()];
  }

  isHung(directory: string): boolean {
    return this.#hung.has(directory);
  }

  use(): void {}
  release(): void {}
  close(): void {}

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  markHung(path: string): void {
    if (!this.#tree.isHung(path)) return;
    this.#hung.set(deviceDirectory(path), path);
    this.#notify();
  }

  async read(path: string, limit: number): Promise<Uint8Array | string> {
    return this.readNow(path, limit);
  }

  readNow(path: string, limit: number): Uint8Array | string {
    if (this.#hung.has(deviceDirectory(path))) return 'EHUNG';
    if (!this.#tree.isHung(path)) return readFile(path, limit);
    this.markHung(path);
    return 'EHUNG';
  }

  /** Simulates a new read process, which knows no hangs. */
  forget(): void {
    this.#hung.clear();
    this.#listeners.clear();
  }

  /** Ends the hangs of files that no longer hang. */
  releaseAll(): void {
    const before = this.#hung.size;
    for (const [directory, path] of this.#hung) if (!this.#tree.isHung(path)) this.#hung.delete(directory);
    if (this.#hung.size !== before) this.#notify();
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

interface Surroundings {
  readonly family: DeviceFamily;
  readonly clock: Clock;
  readonly tree: OverlaidTree;
  readonly weather: Weather;
  readonly isolated: InlineReads;
  /** Process ids of the commands that run. */
  readonly commands: Set<number>;
}

class InlineThread implements ProbeThread {
  hasExited = false;
  readonly exited: Promise<void>;
  readonly #listener: ThreadListener;
  readonly #surroundings: Surroundings;
  readonly #onRun: (run: Promise<void>) => void;
  readonly #guard: StepRecord;
  readonly #probe: Probe;
  readonly #host: ReturnType<typeof createHost>;
  readonly #unwatch: (() => void) | undefined;
  readonly #sender = new CollectionSender();
  readonly #receiver = new CollectionReceiver();
  #isIsolated: boolean;
  #exit = (): void => {};
  #step: Step | undefined;
  #steps = 0;
  #isEnding = false;

  constructor(
    settings: ThreadSettings,
    context: ThreadContext,
    listener: ThreadListener,
    surroundings: Surroundings,
    onRun: (run: Promise<void>) => void,
  ) {
    this.#listener = listener;
    this.#surroundings = surroundings;
    this.#onRun = onRun;
    this.#isIsolated = context.isIsolated;
    this.exited = new Promise((resolve) => {
      this.#exit = () => {
        this.hasExited = true;
        resolve();
      };
    });
    this.#guard = new StepRecord(context.quarantined);
    this.#guard.isolatedReader = { read: (path, limit) => this.#read(path, limit) };
    const children = {
      started: (pid: number) => void surroundings.commands.add(pid),
      ended: (pid: number) => void surroundings.commands.delete(pid),
    };
    this.#host = createHost(settings.roots, surroundings.clock, {
      guard: this.#guard,
      known: context.known,
      counted: context.counted,
      children,
    });
    this.#probe = surroundings.family.createProbe(this.#host, settings.options as never);
    this.#unwatch = this.#probe.watch?.(() => this.#listener.received({ type: 'wake' }));
  }

  send(message: ToWorker): void {
    if (message.type === 'read-directly') this.#isIsolated = false;
    else if (message.type === 'close') this.#end();
    else if (message.type === 'release') this.#probe.release?.(message.release);
    else this.#onRun(this.#collect(message.run, message.ids));
  }

  /** It loads no code. */
  get hasBegun(): boolean {
    return true;
  }

  step(): Step | undefined {
    return this.#step;
  }

  terminate(): void {
    this.#isEnding = true;
    if (this.#step === undefined) this.#end();
  }

  release(tree: OverlaidTree): void {
    if (this.#step === undefined || tree.isHung(this.#step.path)) return;
    this.#step = undefined;
    if (this.#isEnding) this.#end();
  }

  #end(): void {
    if (this.hasExited) return;
    this.#unwatch?.();
    void this.#probe.close?.();
    this.#exit();
  }

  async #collect(run: number, ids: ReadonlySet<string> | undefined): Promise<void> {
    const { weather } = this.#surroundings;
    try {
      if (weather.isToCrash) {
        weather.isToCrash = false;
        throw new Error('a bug of the probe');
      }
      const reports = ids && readAgainChecked(this.#probe, this.#host, ids);
      const reads = this.#sender.encodeReads(reports);
      if (reads !== undefined) {
        const again = this.#receiver.decodeReads(structuredClone(reads));
        const read = (one: Pick<DeviceReport<ReadingList>, 'device' | 'read'>): unknown => ({ device: one.device, read: one.read });
        const isRead = ({ device }: DeviceReport<ReadingList>): boolean => again.ids.includes(device.id);
        assert.deepStrictEqual(
          new Set(plain({ ...listed([]), reports: again.reports.filter(isRead) }).reports.map(read)),
          new Set(reports && plain(listed(reports)).reports.map(read)),
        );
        if (this.#step === undefined) this.#listener.received({ type: 'read-again', run, again });
        return;
      }
      const sent: Collection = await collectChecked(this.#probe, this.#host);
      const collection = this.#receiver.decode(structuredClone(this.#sender.encode(sent)));
      assert.deepStrictEqual(plain(collection), plain(sent));
      if (this.#step === undefined) this.#listener.received({ type: 'collected', run, collection: collection, durationMs: 1 });
    } catch (error) {
      if (error instanceof Hang || this.#step !== undefined) return;
      this.#listener.received({ type: 'failed', run, message: String((error as Error).stack) });
    }
  }

  #read(path: string, limit: number): Buffer | string {
    if (this.#step !== undefined) throw new Hang(this.#step);
    if (this.#surroundings.weather.isOutOfDescriptors) return 'EMFILE';
    if (this.#isIsolated) {
      const answer = this.#surroundings.isolated.readNow(path, limit);
      // The supervisor gets the request like any other.
      if (answer === 'EHUNG') void this.#listener.read(path, limit);
      return typeof answer === 'string' ? answer : Buffer.from(answer);
    }
    if (!this.#surroundings.tree.isHung(path)) return readFile(path, limit);
    this.#steps += 1;
    this.#step = { number: this.#steps, kind: 'file', path };
    throw new Hang(this.#step);
  }
}

function readFile(path: string, limit: number): Buffer | string {
  try {
    const fd = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(limit);
      let length = 0;
      for (let count = -1; count !== 0 && length < limit; length += count) count = readSync(fd, bytes, length, limit - length, null);
      return bytes.subarray(0, length);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'EUNKNOWN';
  }
}
