import { defined } from '../model/defined.ts';
import { hours, minutes, seconds } from '../model/duration.ts';

/** Means over one span of time of all devices of a container together. What was not read is absent. */
export interface Sample {
  /** Monotonic and wall clock of the end. */
  readonly atMs: number;
  readonly wallMs: number;
  /** Length of the span. */
  readonly spanMs: number;
  /** Utilization of the least busy GPU in use, 0 to 1. */
  readonly busy?: number | undefined;
  /** Weighted share of the time in which the most active pipe of all GPUs worked. */
  readonly activity?: number | undefined;
  /** Power as share of its limit, of the highest GPU. */
  readonly power?: number | undefined;
  /** Bytes per second over all links. */
  readonly bytes?: number | undefined;
  /** Power of all GPUs, to see steps. */
  readonly watts?: number | undefined;
  /** What keeps these values from being all of the container, in words; absent when they are. */
  readonly unread?: string | undefined;
}

/** Shares are from 0 to 1. */
export interface Limits {
  readonly afterMs: number;
  readonly learnMs: number;
  readonly busy: number;
  readonly activity: number;
  readonly power: number;
  readonly bytes: number;
}

/** What a restart of the agent keeps. */
export interface Remembered {
  /** Bytes per second that the container usually moved; absent while it showed too little work. */
  readonly usualBytes?: number;
  readonly stepSeconds?: number;
  /** Wall clock. */
  readonly lastProgressMs?: number;
  /** The longest wait that ended in work: a checkpoint of another node, for example. */
  readonly longestWaitMs?: number;
}

export interface Answer extends Remembered {
  readonly state: 'not-waiting' | 'waiting' | 'stalled' | 'unknown';
  /** Wall clock since when nothing moves; present while it waits. */
  readonly sinceMs?: number;
  readonly unknown?: string;
}

/** Samples are judged together until they cover this time, so that one busy second changes nothing; */
const MOST_SPAN_MS = seconds(20);
/** or this part of the time after which a container waits. */
const SPANS_OF_WAIT = 4;
/** Four hours of spans. */
const MOST_SPANS = 720;
/** Enough for ten periods of ten minutes at the usual refresh. */
const MOST_SAMPLES = 600;

/** A longer time of which it is not known whether the container waits ends a wait. */
const MOST_UNKNOWN_MS = minutes(1);

/** A wait is no stall before it lasts this multiple of an earlier one that ended in work, */
const PATIENCE = 1.5;
/** and after this time it always is. */
const MOST_PATIENCE_MS = hours(1);

type Kind = 'not-waiting' | 'quiet' | 'unknown';

/** A wait. `fromMs` moves on with the time that is not known, so that such time never counts. `untilMs`: end of the last quiet span. */
interface Quiet {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly fromWallMs: number;
  readonly usualBytes: number | undefined;
}

/** Judges one container, sample after sample. It has no clock of its own and touches nothing. */
export class WaitingDetector {
  readonly #remembered: Remembered;
  /** Bytes per second of the spans so far, without those of the present wait. */
  #spans: number[] = [];
  #workedMs = 0;
  /** Wall clock of the last sample of work. During a wait it is no progress before it ends the wait. */
  #workedAtMs: number | undefined;
  #open: Sample[] = [];
  #recent: Sample[] = [];
  #quiet: Quiet | undefined;
  #answer: Answer;

  constructor(remembered: Remembered = {}) {
    this.#remembered = remembered;
    this.#workedAtMs = remembered.lastProgressMs;
    this.#answer = { ...remembered, state: 'unknown', unknown: 'it was not observed long enough' };
  }

  get answer(): Answer {
    return this.#answer;
  }

  /** It may wait and is not yet said to: more reads would help. */
  isCandidate(nowMs: number, { afterMs }: Limits): boolean {
    return this.#quiet !== undefined && !isWaiting(this.#answer) && nowMs - this.#quiet.fromMs >= afterMs / 2;
  }

  /** Says that a time was not observed, and why: the minutes before cannot be added to those after. */
  interrupted(why: string): void {
    this.#open = [];
    this.#recent = [];
    this.#quiet = undefined;
    this.#answer = { ...rememberedOf(this.#answer), state: 'unknown', unknown: why };
  }

  take(sample: Sample, limits: Limits): Answer {
    this.#open.push(sample);
    this.#recent.push(sample);
    if (this.#recent.length > MOST_SAMPLES) this.#recent.shift();
    if (isWork(sample, this.#usualBytes, limits)) this.#workedAtMs = sample.wallMs;
    if (this.#quiet === undefined) this.#answer = { ...this.#answer, ...defined({ lastProgressMs: this.#workedAtMs }) };
    const spanMs = this.#open.reduce((sum, one) => sum + one.spanMs, 0);
    if (spanMs >= Math.min(MOST_SPAN_MS, limits.afterMs / SPANS_OF_WAIT)) this.#close(meanOf(this.#open, spanMs), limits);
    return this.#answer;
  }

  /** The median of the earlier spans. While there are too few, the one that an earlier run of the agent knew. */
  get #usualBytes(): number | undefined {
    return this.#quiet === undefined ? this.#answer.usualBytes : this.#quiet.usualBytes;
  }

  #close(span: Sample, limits: Limits): void {
    this.#open = [];
    const { kind, unknown } = kindOf(span, this.#usualBytes, limits);
    if (kind === 'quiet') this.#rest(span, limits);
    else if (kind !== 'unknown' || !this.#pause(span)) this.#goOn(span, kind, unknown, limits);
  }

  /** Returns false when nothing is known for too long. */
  #pause({ atMs, spanMs }: Sample): boolean {
    const quiet = this.#quiet;
    if (quiet === undefined || atMs - quiet.untilMs > MOST_UNKNOWN_MS) return false;
    this.#quiet = { ...quiet, fromMs: quiet.fromMs + spanMs };
    return true;
  }

  /** Until the wait is long enough, the answer stays as it was: what was unknown is not known to move. */
  #rest(span: Sample, limits: Limits): void {
    const begun = { fromMs: span.atMs - span.spanMs, fromWallMs: span.wallMs - span.spanMs, usualBytes: this.#usualBytes };
    this.#quiet = { ...(this.#quiet ?? begun), untilMs: span.atMs };
    const waitedMs = span.atMs - this.#quiet.fromMs;
    if (waitedMs < limits.afterMs) return;
    const { stepSeconds, longestWaitMs = 0 } = this.#answer;
    const isStalled = stepSeconds !== undefined && waitedMs >= Math.min(PATIENCE * longestWaitMs, MOST_PATIENCE_MS);
    this.#answer = { ...rememberedOf(this.#answer), state: isStalled ? 'stalled' : 'waiting', sinceMs: this.#quiet.fromWallMs };
  }

  #goOn(span: Sample, state: 'not-waiting' | 'unknown', unknown: string | undefined, limits: Limits): void {
    const before = this.#answer;
    const waitedMs = isWaiting(before) && isActive(span, limits) ? span.atMs - span.spanMs - (this.#quiet?.fromMs ?? 0) : 0;
    this.#quiet = undefined;
    if (isActive(span, limits)) this.#workedMs += span.spanMs;
    if (span.bytes !== undefined) this.#spans.push(span.bytes);
    if (this.#spans.length > MOST_SPANS) this.#spans.shift();
    const longestWaitMs = Math.max(waitedMs, before.longestWaitMs ?? 0);
    this.#answer = {
      ...defined({
        usualBytes: this.#workedMs >= limits.learnMs ? median(this.#spans) : this.#remembered.usualBytes,
        stepSeconds: this.#stepSeconds() ?? before.stepSeconds,
        lastProgressMs: this.#workedAtMs,
        longestWaitMs: longestWaitMs > 0 ? longestWaitMs : undefined,
        unknown,
      }),
      state,
    };
  }

  /** The period of what was read at the present distance: other distances before it do not count. */
  #stepSeconds(): number | undefined {
    const spacing = this.#recent.at(-1)?.spanMs ?? 0;
    const other = this.#recent.findLastIndex(({ spanMs }) => Math.abs(spanMs - spacing) > spacing / 2);
    const alike = this.#recent.slice(other + 1);
    const meanMs = alike.reduce((sum, { spanMs }) => sum + spanMs, 0) / alike.length;
    for (const of of [bytesOf, wattsOf]) {
      const values = alike.map(of);
      const period = periodOf(values.slice(values.lastIndexOf(undefined) + 1) as number[]);
      if (period !== undefined) return Number(((period * meanMs) / 1_000).toPrecision(3));
    }
    return undefined;
  }
}

const bytesOf = ({ bytes }: Sample): number | undefined => bytes;
const wattsOf = ({ watts }: Sample): number | undefined => watts;

const isWaiting = ({ state }: Answer): boolean => state === 'waiting' || state === 'stalled';

export const rememberedOf = ({ usualBytes, stepSeconds, lastProgressMs, longestWaitMs }: Remembered): Remembered =>
  defined({ usualBytes, stepSeconds, lastProgressMs, longestWaitMs });

/** A pipe works, or the GPU draws more power than while it spins: no device reports all that can work. */
const isActive = ({ activity, power }: Sample, limits: Limits): boolean =>
  (activity !== undefined && activity >= limits.activity) || (power !== undefined && power > limits.power);

const isMoving = ({ bytes }: Sample, usual: number | undefined, limits: Limits): boolean =>
  bytes !== undefined && usual !== undefined && bytes >= usual * limits.bytes;

const isWork = (sample: Sample, usual: number | undefined, limits: Limits): boolean =>
  isActive(sample, limits) || (usual !== undefined && usual > 0 && isMoving(sample, usual, limits));

/** One sign that it does not wait is enough. That it waits needs each sign. */
function kindOf(span: Sample, usual: number | undefined, limits: Limits): { readonly kind: Kind; readonly unknown?: string } {
  const { busy, unread } = span;
  if ((busy !== undefined && busy < limits.busy) || isActive(span, limits) || isMoving(span, usual, limits)) return { kind: 'not-waiting' };
  if (unread !== undefined) return { kind: 'unknown', unknown: unread };
  return usual === undefined
    ? { kind: 'unknown', unknown: 'it has not worked long enough to know what it usually moves' }
    : { kind: 'quiet' };
}

/** Means over the time of the samples that have the value. */
function meanOf(samples: readonly Sample[], spanMs: number): Sample {
  const last = samples.at(-1) as Sample;
  const mean = (of: (sample: Sample) => number | undefined): number | undefined => {
    let [sum, overMs] = [0, 0];
    for (const sample of samples) {
      const value = of(sample);
      if (value === undefined) continue;
      sum += value * sample.spanMs;
      overMs += sample.spanMs;
    }
    return overMs === 0 ? undefined : sum / overMs;
  };
  return {
    atMs: last.atMs,
    wallMs: last.wallMs,
    spanMs,
    busy: mean(({ busy }) => busy),
    activity: mean(({ activity }) => activity),
    power: mean(({ power }) => power),
    bytes: mean(bytesOf),
    unread: samples.find(({ unread }) => unread !== undefined)?.unread,
  };
}

function median(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}

/** Fewer values show no period that chance could not show. */
const LEAST_VALUES = 40;
/** Periods that the values must cover. */
const LEAST_PERIODS = 4;
/** Correlation with itself one period, and two periods, later. */
const ONE_LATER = 0.5;
const TWO_LATER = 0.35;
/** Values that vary less, as share of their mean, have no phases. */
const LEAST_VARIATION = 0.1;

/**
 * Length of the shortest period of equally spaced values, in their spacing; undefined when there is none. It is the first peak of the
 * autocorrelation after its first trough, and only if the double of it correlates too: noise, trends and single bursts have no such peak.
 */
export function periodOf(values: readonly number[]): number | undefined {
  const count = values.length;
  if (count < LEAST_VALUES) return undefined;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const apart = Float64Array.from(values, (value) => value - mean);
  const variance = apart.reduce((sum, value) => sum + value * value, 0) / count;
  if (!(mean > 0) || Math.sqrt(variance) < LEAST_VARIATION * mean) return undefined;
  const correlation = (lag: number): number => {
    let sum = 0;
    for (let at = lag; at < count; at += 1) sum += (apart[at] as number) * (apart[at - lag] as number);
    return sum / (count - lag) / variance;
  };
  const most = Math.floor(count / LEAST_PERIODS);
  let isPastTrough = false;
  let [before, now] = [1, correlation(1)];
  for (let lag = 1; lag <= most; lag += 1) {
    const after = correlation(lag + 1);
    isPastTrough ||= now < 0.2;
    const isPeak = isPastTrough && now >= ONE_LATER && now >= before && now >= after;
    if (isPeak && Math.max(correlation(2 * lag - 1), correlation(2 * lag), correlation(2 * lag + 1)) >= TWO_LATER)
      return lag + vertex(before, now, after);
    [before, now] = [now, after];
  }
  return undefined;
}

/** Where the parabola through three equally spaced values is highest, from the middle one. */
function vertex(before: number, now: number, after: number): number {
  const bend = before - 2 * now + after;
  return bend >= 0 ? 0 : Math.max(-0.5, Math.min(0.5, (0.5 * (before - after)) / bend));
}
