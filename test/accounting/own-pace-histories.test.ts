import { expect, it } from 'vitest';
import type { Assembler, UsageDependencies } from '../../src/agent/assemble.ts';
import { ReadingHistoryStore } from '../../src/incidents/history.ts';
import type { Reading } from '../../src/model/metric.ts';
import { shared } from '../../src/model/shared-metrics.ts';
import type { ContainerUsage } from '../../src/model/usage.ts';
import { asOf, isDue, Pacer } from '../../src/probes/kit/pace.ts';
import { repetitions } from '../support/repetitions.ts';
import { type Choose, seeded } from '../support/seeded.ts';
import { familyState, listed, lookAt, podResources } from '../support/snapshots.ts';
import { assembler, hca, hcaReadings, holds, report, savedText, usageParts } from './small-node.ts';

const T0 = Date.parse('2030-01-01T00:00:00Z');
const RECEIVED = [shared.receivedBytes.name, { port: '1' }] as const;
const specs = new Map([[shared.receivedBytes.name, { type: 'counter' as const }]]);

/** A read of the counters: when it was, and what they had. */
interface SourceRead {
  readonly atMs: number;
  readonly bytes: number;
}

/** An HCA whose counters are read at their own interval, a pod that holds it, and an agent that ends and starts again. */
class History {
  readonly #pick: Choose;
  readonly #refreshMs: number;
  readonly #everyMs: number;
  now = 10_000;
  bytes = 5_000;
  #isMoving = false;
  #restMs = 0;
  /** Of the present run of the agent. */
  reads: SourceRead[] = [];
  #pacer = new Pacer();
  #readings: readonly Reading[] = [];
  #parts: UsageDependencies = usageParts();
  #agent: Assembler = assembler(this.#parts);
  #history = this.#newHistory();
  /** Seconds that the reads of earlier runs showed as moving and as still. */
  before = { busy: 0, idle: 0 };
  account: ContainerUsage | undefined;

  constructor(pick: Choose) {
    this.#pick = pick;
    this.#refreshMs = [1_000, 5_000, 10_000][pick(3)] as number;
    this.#everyMs = this.#refreshMs * (1 + pick(12)) + pick(2) * pick(this.#refreshMs);
  }

  /** Time passes until the next refresh, which a timer runs a little early or late. */
  pass(): void {
    const ms = this.#refreshMs - 3 + this.#pick(7);
    for (let left = ms; left > 0; ) {
      if (this.#restMs <= 0) {
        this.#isMoving = !this.#isMoving;
        this.#restMs = 1_000 + this.#pick(6) * this.#refreshMs * (1 + this.#pick(4));
      }
      const step = Math.min(left, this.#restMs);
      if (this.#isMoving) this.bytes += step * 1_000_000;
      this.#restMs -= step;
      left -= step;
    }
    this.now += ms;
  }

  /** One refresh. Returns the rate that the page shows after it. */
  look(): number | undefined {
    const pace = this.#pacer.next(this.now);
    const last = this.reads.at(-1);
    if (isDue(last?.atMs, this.#everyMs, pace)) {
      this.reads.push({ atMs: this.now, bytes: this.bytes });
      this.#readings = hcaReadings(this.bytes, 0);
    } else this.#readings = asOf(hcaReadings(last?.bytes ?? 0, 0), last?.atMs);
    const tookMs = 1 + this.#pick(8);
    const ended = this.now + tookMs;
    const { devices, usage } = this.#agent.assemble(
      {
        families: [{ state: familyState('hca'), latest: lookAt(listed([report(hca('h0'), this.#readings)]), T0 + ended, ended, this.now) }],
        podResources: podResources([holds('h0', 'train')], { answeredAtMs: T0 + ended }),
        checkpoint: [],
      },
      { nowMs: T0 + ended + 1, monotonicMs: ended + 1 },
    );
    this.#history.take(devices);
    this.account = usage?.containers[0];
    return this.#history.rateOf('hca/h0', ...RECEIVED);
  }

  restart(): void {
    const text = savedText(this.#parts);
    this.before = this.shown();
    this.reads = [];
    this.#pacer = new Pacer();
    this.#parts = usageParts({ text, gapMs: 0, monotonicMs: this.now });
    this.#agent = assembler(this.#parts);
    this.#history = this.#newHistory();
  }

  /** Seconds that two reads of the source each show as moving and as still, so far. */
  shown(): { busy: number; idle: number } {
    const sums = { ...this.before };
    for (const [at, { atMs, bytes }] of this.reads.entries()) {
      const from = this.reads[at - 1];
      if (from === undefined) continue;
      const isBusy = ((bytes - from.bytes) * 1_000) / (atMs - from.atMs) > 10_000;
      sums[isBusy ? 'busy' : 'idle'] += (atMs - from.atMs) / 1_000;
    }
    return sums;
  }

  #newHistory(): ReadingHistoryStore {
    return new ReadingHistoryStore({ periodMs: 999_000, intervalMs: 1_000, specs });
  }
}

it(`shows rates, busy and idle time as two reads of the source tell them, in ${repetitions(10, 1_000)} random histories`, () => {
  for (let seed = 1; seed <= repetitions(10, 1_000); seed += 1) {
    const pick = seeded(seed);
    const one = new History(pick);
    let runs = 1;
    for (let step = 0; step < 80; step += 1) {
      one.pass();
      if (pick(40) === 0) {
        one.restart();
        runs += 1;
      }
      const rate = one.look();
      const [from, to] = one.reads.slice(-2);
      const expected = from === undefined || to === undefined ? undefined : ((to.bytes - from.bytes) * 1_000) / (to.atMs - from.atMs);
      const where = `seed ${seed}, step ${step}`;
      if (expected === undefined) expect(rate, where).toBeUndefined();
      else expect(Math.abs((rate ?? Number.NaN) - expected), where).toBeLessThanOrEqual(0.02 * expected);
      const { busy, idle } = one.shown();
      const { busySeconds, idleSeconds, unobservedSeconds, allocatedSeconds } = one.account as ContainerUsage;
      // A read is dated by its end or by its begin, and the agent begins to count after its first read.
      const tolerance = 0.03 * (one.reads.length + runs * 3);
      expect(Math.abs((busySeconds.traffic ?? 0) - busy), `${where}: busy`).toBeLessThanOrEqual(tolerance);
      expect(Math.abs(idleSeconds - idle), `${where}: idle`).toBeLessThanOrEqual(tolerance);
      expect(busy + idle + unobservedSeconds, where).toBeLessThanOrEqual(allocatedSeconds + tolerance);
    }
  }
});
