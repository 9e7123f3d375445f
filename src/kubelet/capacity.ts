import { dirname } from 'node:path';
import type { Clock } from '../host/clock.ts';
import type { PodResources } from '../model/pod-resources.ts';
import { settledMark } from './checkpoint/file-mark.ts';
import type { AllocatableResult } from './client/client.ts';

/** How long an answer stands that nothing contradicts. */
const STANDS_MS = 60_000;

/**
 * What the kubelet can hand out, asked for when it may have changed. The kubelet writes its device checkpoint after each change of the
 * devices that plugins tell, and a plugin that comes or goes makes or removes a socket beside it: while that directory is as it
 * was, the answer hardly ever is another. What leaves no trace there, such as a plugin that was killed, is found after `STANDS_MS`.
 * CPUs and memory stay the same for the life of a kubelet.
 */
export class Capacity {
  readonly #checkpoint: string;
  readonly #clock: Clock;
  readonly #ask: () => Promise<AllocatableResult>;
  #current: Pick<PodResources, 'allocatable' | 'allocatableAskedMs'> = {};
  /** What was there before the last question that was answered, and when that was. */
  #asked: { readonly mark: string; readonly atMs: number } | undefined;

  /** With an empty path for the checkpoint the kubelet is asked each time. */
  constructor(checkpoint: string, clock: Clock, ask: () => Promise<AllocatableResult>) {
    this.#checkpoint = checkpoint;
    this.#clock = clock;
    this.#ask = ask;
  }

  get current(): Pick<PodResources, 'allocatable' | 'allocatableAskedMs'> {
    return this.#current;
  }

  /** Asks the kubelet of this identity unless its last answer stands. */
  async refresh(identity: string): Promise<void> {
    const mark = this.#mark(identity);
    const atMs = this.#clock.monotonic();
    if (mark !== undefined && mark === this.#asked?.mark && atMs - this.#asked.atMs < STANDS_MS) return;
    const allocatableAskedMs = this.#clock.now();
    const result = await this.#ask();
    this.#asked = result.kind === 'failed' || mark === undefined ? undefined : { mark, atMs };
    // The last capacity stands only while the rate limit is in the way; after any other failure it is not known.
    if (result.kind === 'answer') this.#current = { allocatable: result.allocatable, allocatableAskedMs };
    else if (result.kind === 'unsupported' || result.failure.reason !== 'rate-limited') this.#current = {};
  }

  /** The kubelet could not be asked who holds what: the next answer may come from a kubelet that was restarted. */
  doubt(): void {
    this.#asked = undefined;
  }

  /** Nobody has confirmed it for too long. */
  forget(): void {
    this.#asked = undefined;
    this.#current = {};
  }

  #mark(identity: string): string | undefined {
    if (this.#checkpoint === '') return undefined;
    // The checkpoint is replaced by renaming, which the directory shows as well.
    const directory = settledMark(dirname(this.#checkpoint), this.#clock);
    return directory === undefined ? undefined : `${identity} ${directory}`;
  }
}
