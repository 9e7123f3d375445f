import assert from 'node:assert';
import { readFileSync } from 'node:fs';
import type { Clock } from '../../src/host/clock.ts';
import { type Step, StepGuard, type StepKind, type StepPlace } from '../../src/host/fs/step-guard.ts';
import { createHost, type Host } from '../../src/host/host.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import type { ReadingList } from '../../src/model/readings.ts';
import type { DeviceFamily, Probe } from '../../src/probes/family.ts';
import type { Collect, Reader, ReaderListener, StartReader, ToReader } from '../../src/supervisor/messages.ts';
import type { Position } from '../../src/supervisor/position.ts';
import { CollectionReceiver, CollectionSender } from '../../src/supervisor/posted-collection.ts';
import { look, readAgainChecked } from '../../src/supervisor/probe-look.ts';
import { listed, plain } from '../support/snapshots.ts';
import type { OverlaidTree } from './overlaid-tree.ts';

/** Thrown by a read that would never return: the reader stays in that step. */
class Hang extends Error {}

/** Disturbances of all readers by the operating system. */
export interface Weather {
  /** No descriptor is left, so no file can be opened. */
  isOutOfDescriptors: boolean;
  /** The next run of a probe throws an error. */
  isToCrash: boolean;
}

/**
 * Simulates the readers in one thread, so that thousands of histories can run. Supervisor, probes, trees and commands are real. A read of a FIFO
 * does not block; the simulated reader sleeps in that step as in the kernel, where a signal does not end it.
 */
export class InlineThreads {
  readonly weather: Weather = { isOutOfDescriptors: false, isToCrash: false };
  readonly start: StartReader;
  readonly #readers = new Set<InlineReader>();
  readonly #runs = new Set<Promise<void>>();
  readonly #commands = new Set<number>();

  constructor(tree: OverlaidTree, clock: Clock, families: readonly DeviceFamily[]) {
    const surroundings: Surroundings = { families, clock, tree, weather: this.weather, commands: this.#commands };
    this.start = (listener) => {
      const reader = new InlineReader(listener, surroundings, (run) => {
        this.#runs.add(run);
        void run.finally(() => this.#runs.delete(run));
      });
      this.#readers.add(reader);
      return reader;
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

  /** Ends the killed readers whose files no longer hang. */
  release(): void {
    for (const reader of this.#readers) if (reader.release()) this.#readers.delete(reader);
  }
}

interface Surroundings {
  readonly families: readonly DeviceFamily[];
  readonly clock: Clock;
  readonly tree: OverlaidTree;
  readonly weather: Weather;
  /** Process ids of the commands that run. */
  readonly commands: Set<number>;
}

interface Hosted {
  readonly probe: Probe;
  readonly host: Host;
  readonly guard: InlineGuard;
  readonly unwatch: (() => void) | undefined;
  readonly exclude: unknown;
  readonly sender: CollectionSender;
  readonly receiver: CollectionReceiver;
}

class InlineReader implements Reader {
  readonly pid = 1;
  hasExited = false;
  #words = 0;
  readonly #listener: ReaderListener;
  readonly #surroundings: Surroundings;
  readonly #onRun: (run: Promise<void>) => void;
  readonly #hosted = new Map<string, Hosted>();
  #step: Step | undefined;
  #isEnding = false;

  constructor(listener: ReaderListener, surroundings: Surroundings, onRun: (run: Promise<void>) => void) {
    this.#listener = listener;
    this.#surroundings = surroundings;
    this.#onRun = onRun;
  }

  position(): Position {
    return { writes: this.#words, step: this.#step };
  }

  isAsleep(): boolean {
    return true;
  }

  hear(then: () => void): void {
    then();
  }

  send(message: ToReader): void {
    if (message.run === undefined) this.#close(message.family);
    else this.#onRun(this.#collect(message));
  }

  end(): void {
    this.#isEnding = true;
    if (this.hasExited || this.#hungGuard !== undefined) return;
    this.hasExited = true;
    for (const family of this.#hosted.keys()) this.#close(family);
    // A process ends later than it is told to.
    queueMicrotask(() => this.#listener.ended({ how: 'SIGKILL', isFromOutside: true }));
  }

  kill(): void {
    this.end();
  }

  /** Whether it has ended. */
  release(): boolean {
    const path = this.#hungGuard?.hungPath;
    if (path === undefined || this.#surroundings.tree.isHung(path)) return this.hasExited;
    for (const { guard } of this.#hosted.values()) guard.hungPath = undefined;
    if (this.#isEnding) this.end();
    return this.hasExited;
  }

  get #hungGuard(): InlineGuard | undefined {
    return [...this.#hosted.values()].find(({ guard }) => guard.hungPath !== undefined)?.guard;
  }

  #close(family: string): void {
    const { probe, unwatch } = this.#hosted.get(family) ?? {};
    this.#hosted.delete(family);
    unwatch?.();
    void probe?.close?.();
  }

  #make({ family, start, leftOut }: Collect): void {
    if (start === undefined) return;
    this.#close(family);
    const { families, clock, commands } = this.#surroundings;
    const { createProbe } = families.find(({ name }) => name === family) as DeviceFamily;
    const guard: InlineGuard = new InlineGuard(this.#surroundings, leftOut, (step) => {
      // A process that hangs says nothing more.
      if (guard.hungPath !== undefined && step === undefined) return;
      this.#words += 1;
      this.#step = step;
    });
    const children = {
      started: (pid: number) => void commands.add(pid),
      ended: (pid: number) => void commands.delete(pid),
    };
    const host = createHost(start.roots, clock, { guard, known: start.known, counted: start.counted, children });
    const probe = createProbe(host, start.options as never);
    const unwatch = probe.watch?.(() => this.#listener.received({ kind: 'wake', family }));
    const { exclude } = start.options;
    this.#hosted.set(family, { probe, host, guard, unwatch, exclude, sender: new CollectionSender(), receiver: new CollectionReceiver() });
  }

  async #collect(request: Collect): Promise<void> {
    const { family, run, ids, leftOut } = request;
    const { weather } = this.#surroundings;
    try {
      this.#make(request);
      const { probe, host, guard, exclude, sender, receiver } = this.#hosted.get(family) as Hosted;
      guard.leftOut = leftOut;
      probe.release?.(request.release);
      if (weather.isToCrash) {
        weather.isToCrash = false;
        throw new Error('a bug of the probe');
      }
      const reports = ids && readAgainChecked(probe, host, ids);
      const reads = sender.encodeReads(reports);
      if (reads !== undefined) {
        const again = receiver.decodeReads(structuredClone(reads));
        const read = (one: Pick<DeviceReport<ReadingList>, 'device' | 'read'>): unknown => ({ device: one.device, read: one.read });
        const isRead = ({ device }: DeviceReport<ReadingList>): boolean => again.ids.includes(device.id);
        assert.deepStrictEqual(
          new Set(plain({ ...listed([]), reports: again.reports.filter(isRead) }).reports.map(read)),
          new Set(reports && plain(listed(reports)).reports.map(read)),
        );
        if (!this.hasExited && this.#hungGuard === undefined)
          this.#listener.received({ kind: 'partial', run, reads: structuredClone(reads) });
        return;
      }
      const sent = await look(probe, host, { leftOut, exclude });
      const collection = sender.encode(sent);
      assert.deepStrictEqual(plain(receiver.decode(structuredClone(collection))), plain(sent));
      if (!this.hasExited && this.#hungGuard === undefined)
        this.#listener.received({ kind: 'collected', run, collection: structuredClone(collection), durationMs: 1 });
    } catch (error) {
      if (error instanceof Hang || this.hasExited || this.#hungGuard !== undefined) return;
      this.#listener.received({ kind: 'failed', family, run, message: String((error as Error).stack) });
    }
  }
}

/** It throws where a read would hang, and refuses reads while no descriptor is left. */
class InlineGuard extends StepGuard {
  readonly #surroundings: Surroundings;
  /** Where the reader hangs. */
  hungPath: string | undefined;

  constructor(surroundings: Surroundings, closed: readonly string[], say: (step: Step | undefined) => void) {
    super(closed, say);
    this.#surroundings = surroundings;
  }

  override enter(path: string, kind?: StepKind, file?: StepPlace): string | undefined {
    if (this.hungPath !== undefined) throw new Hang();
    const refusal = super.enter(path, kind, file);
    if (refusal !== undefined) return refusal;
    const { tree, weather } = this.#surroundings;
    if (weather.isOutOfDescriptors) return 'EMFILE';
    if (!tree.isHung(path)) return undefined;
    this.hungPath = path;
    throw new Hang();
  }

  override leave(): void {
    // The reader stays in the step that hangs.
    if (this.hungPath === undefined) super.leave();
  }
}
