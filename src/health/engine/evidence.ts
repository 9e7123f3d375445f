import { exactDurationText } from '../../model/duration.ts';
import type { CountFinding, Finding, LevelFinding, Severity, TimesFinding } from '../../model/health.ts';
import { type Levels, withLevels } from '../policy/levels.ts';
import type { ConditionPolicy, RateThreshold } from '../policy/policy.ts';
import { type Evidence, evidenceFor } from './conditions.ts';
import { type ConditionState, conditionKey, conditionOf } from './memory.ts';
import { addSample, judgeRate, type RateSeries } from './rate.ts';

export interface EvidenceInput {
  readonly findings: readonly Finding[];
  /** Remembered conditions and counters. */
  readonly conditions: Readonly<Record<string, ConditionState>>;
  readonly rates: Readonly<Record<string, RateSeries>>;
  readonly levels: Levels;
  /** Wall clock of the reading that gave the findings. */
  readonly atMs: number;
  /** Monotonic clock of that reading; absent: all findings have its time. */
  readonly monotonicMs?: number | undefined;
  /** Whether the source that gave the findings may judge a condition. */
  isOfSource(condition: { readonly type: string }): boolean;
  policyOf(condition: { readonly type: string; readonly instance?: string | undefined }): ConditionPolicy;
}

export interface EvidenceOutput {
  readonly evidence: readonly Evidence[];
  readonly rates: Readonly<Record<string, RateSeries>>;
  readonly levels: Levels;
}

/**
 * Turns the findings of one reading into evidence: counters are judged by their growth, levels by the highest level seen. A remembered
 * instance without a finding is false when a finding denies the condition for all instances. Otherwise it is unknown. Only a fault changes
 * a condition that is not remembered, so the other findings on it give no evidence. On a healthy device these are nearly all findings.
 */
export function evidenceOf(input: EvidenceInput): EvidenceOutput {
  const { conditions } = input;
  const rates: Record<string, RateSeries> = {};
  const evidence: Evidence[] = [];
  const levels = new Map<string, number>();
  for (const finding of input.findings) {
    const isRemembered = hasType(conditions, finding.type);
    if (finding.status !== undefined && finding.status !== true && !isRemembered) continue;
    if (!input.isOfSource(finding)) continue;
    const item = fromFinding(finding, input, rates, levels);
    if (isRemembered || item.status === true) evidence.push(describe(finding, item, timeOf(finding, input)));
  }
  keepUnreadCounters(input, rates);
  const withdrawn = evidence.filter(({ status, instance }) => status === false && instance === undefined);
  for (const key in conditions) {
    const state = conditions[key] as ConditionState;
    const isDenied = withdrawn.some(({ type }) => type === state.type) && !evidence.some((item) => conditionKey(item) === key);
    if (isDenied) evidence.push(evidenceFor(state, false, input.atMs));
  }
  return { evidence, rates, levels: withLevels(input.levels, levels) };
}

function hasType(conditions: EvidenceInput['conditions'], type: string): boolean {
  for (const key in conditions) if (conditions[key]?.type === type) return true;
  return false;
}

/** Wall clock of the read that showed a finding, which can be an earlier one than the device's. */
function timeOf({ readMs }: Finding, { atMs, monotonicMs }: EvidenceInput): number {
  return readMs === undefined || monotonicMs === undefined ? atMs : atMs - Math.max(0, monotonicMs - readMs);
}

/** Keeps one evidence per condition, the worst. */
export function mergeEvidence(evidence: readonly Evidence[]): readonly Evidence[] {
  if (evidence.length < 2) return evidence;
  const merged = new Map<string, Evidence>();
  for (const item of evidence) {
    const key = conditionKey(item);
    merged.set(key, worse(merged.get(key), item));
  }
  return [...merged.values()];
}

/** Judgement of one finding. `growth` and `threshold`: of a counter that grew too much. `times`: how often something came. `highest`: the highest level, of a level that fell. */
interface Judged {
  readonly status: Evidence['status'];
  readonly growth?: number;
  readonly times?: number;
  readonly threshold?: RateThreshold;
  readonly highest?: number;
}

const HOLDS: Judged = { status: true };
const HOLDS_NOT: Judged = { status: false };
const UNKNOWN: Judged = { status: 'unknown' };

function fromFinding(finding: Finding, input: EvidenceInput, rates: Record<string, RateSeries>, levels: Map<string, number>): Judged {
  if (finding.count !== undefined) return fromCounter(finding, input, rates);
  if (finding.level !== undefined) return fromLevel(finding, input, levels);
  if (finding.times !== undefined) return fromTimes(finding, input);
  return finding.status === true ? HOLDS : finding.status ? UNKNOWN : HOLDS_NOT;
}

function describe(finding: Finding, { status, growth, times, threshold, highest }: Judged, atMs: number): Evidence {
  const { type, instance, reason, severity, remedy, causedBy } = finding;
  let { message } = finding;
  if (growth !== undefined && threshold !== undefined) {
    // The share of a step that crosses the begin of the window is a whole step where things are counted.
    const shown = Number.isInteger(finding.count) ? Math.ceil(Number(growth.toFixed(6))) : Number(growth.toFixed(1));
    const figure = `grew by ${shown} within ${exactDurationText(threshold.windowMs)}, limit ${threshold.growth}`;
    message = `${message} (${figure})`;
  }
  if (times !== undefined && threshold !== undefined)
    message = `${message}; ${times} times within ${exactDurationText(threshold.windowMs)}, limit ${threshold.growth}`;
  if (highest !== undefined) message = `${message} (highest seen: ${highest})`;
  return { type, instance, status, atMs, reason, message, severity, remedy, causedBy };
}

function fromCounter(finding: CountFinding, input: EvidenceInput, rates: Record<string, RateSeries>): Judged {
  const key = conditionKey(finding);
  const { threshold } = input.policyOf(finding);
  const before = rates[key] ?? (Object.hasOwn(input.rates, key) ? input.rates[key] : undefined);
  const { count: value, ceiling } = finding;
  const atMs = timeOf(finding, input);
  const dated = before === undefined ? datedSeries(finding, input) : withDated(before, finding, input, threshold.windowMs);
  const series = addSample(dated, { value, atMs, ceiling }, threshold.windowMs);
  if (series !== undefined) rates[key] = series;
  if (!Number.isFinite(value) || value < 0) return UNKNOWN;
  const { status, growth } = judgeRate(series, threshold, atMs);
  if (status === true && growth !== undefined) return { status, growth, threshold };
  return status === 'unknown' ? UNKNOWN : HOLDS_NOT;
}

/** The growth of a counter before its first read. Undefined when the source does not know its times. */
function datedSeries({ count, grewMs = [] }: CountFinding, { atMs, monotonicMs }: EvidenceInput): RateSeries | undefined {
  if (monotonicMs === undefined || grewMs.length === 0) return undefined;
  const first = count - grewMs.length;
  const points = grewMs.map((ms, at) => [atMs - Math.max(0, monotonicMs - ms), at + 1] as const);
  const [begin = atMs] = points[0] ?? [];
  return { value: first + points.length, atMs: points.at(-1)?.[0] ?? atMs, saturated: false, points: [[begin - 1, 0], ...points] };
}

/** What grew since the last read, at its own times: an agent that did not run reads it late. */
function withDated(
  before: RateSeries,
  { count, grewMs = [] }: CountFinding,
  { atMs, monotonicMs }: EvidenceInput,
  windowMs: number,
): RateSeries | undefined {
  if (monotonicMs === undefined || grewMs.length === 0 || count <= before.value) return before;
  const own = grewMs.slice(before.value - count);
  return own.reduce<RateSeries | undefined>((series, ms, at) => {
    const sample = { value: count - own.length + at + 1, atMs: Math.max(before.atMs + 1, atMs - Math.max(0, monotonicMs - ms)) };
    return addSample(series, sample, windowMs);
  }, before);
}

function fromTimes(finding: TimesFinding, input: EvidenceInput): Judged {
  const { threshold } = input.policyOf(finding);
  const times = finding.times.filter((atMs) => atMs > input.atMs - threshold.windowMs).length;
  return times > threshold.growth ? { status: true, times, threshold } : HOLDS_NOT;
}

function fromLevel(finding: LevelFinding, input: EvidenceInput, levels: Map<string, number>): Judged {
  const key = conditionKey(finding);
  const level = Number(finding.level);
  if (!Number.isFinite(level)) return UNKNOWN;
  const before = levels.get(key) ?? (Object.hasOwn(input.levels.highest, key) ? input.levels.highest[key] : undefined);
  const highest = Math.max(before ?? level, Number(finding.atLeast ?? level), level);
  levels.set(key, highest);
  if (level === highest) return HOLDS_NOT;
  return finding.tellsHighest ? { status: true, highest } : HOLDS;
}

/**
 * Keeps the history of a counter without a finding while the history is still usable: for two windows. Other sources judge theirs themselves:
 * that of a counter which is read rarely is old between two of its reads.
 */
function keepUnreadCounters(input: EvidenceInput, rates: Record<string, RateSeries>): void {
  for (const key in input.rates) {
    if (rates[key] !== undefined) continue;
    const series = input.rates[key] as RateSeries;
    const name = conditionOf(key);
    const { windowMs } = input.policyOf(name).threshold;
    if (!input.isOfSource(name) || input.atMs - series.atMs < 2 * windowMs) rates[key] = series;
  }
}

const RANK: Readonly<Record<Severity, number>> = { fatal: 3, degraded: 2, info: 1 };

/** Returns the worse of two evidences on one condition: true before unknown before false, then by severity. */
function worse(a: Evidence | undefined, b: Evidence): Evidence {
  if (a === undefined) return b;
  const weight = (item: Evidence): number =>
    (item.status === true ? 20 : item.status === 'unknown' ? 10 : 0) + (item.severity === undefined ? 0 : RANK[item.severity]);
  return weight(b) > weight(a) ? b : a;
}
