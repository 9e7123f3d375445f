import { formatDuration, millis } from '../../model/duration.ts';
import type { CountFinding, Finding, LevelFinding, Severity } from '../../model/health.ts';
import { type Levels, withLevels } from '../policy/levels.ts';
import type { ConditionPolicy, RateThreshold } from '../policy/policy.ts';
import { type Evidence, evidenceFor } from './conditions.ts';
import { type ConditionState, conditionKey, conditionName } from './memory.ts';
import { addSample, judgeRate, type RateJudgement, type RateSeries } from './rate.ts';

export interface EvidenceInput {
  readonly findings: readonly Finding[];
  /** Remembered conditions and counters. */
  readonly conditions: Readonly<Record<string, ConditionState>>;
  readonly rates: Readonly<Record<string, RateSeries>>;
  readonly levels: Levels;
  /** Wall clock of the reading that gave the findings. */
  readonly atMs: number;
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
 * instance without a finding is false when a finding denies the condition for all instances. Otherwise it is unknown.
 */
export function evidenceOf(input: EvidenceInput): EvidenceOutput {
  const rates: Record<string, RateSeries> = {};
  const found = new Map<string, Evidence>();
  const levels = new Map<string, number>();
  const withdrawn = new Map<string, Evidence>();
  const remembered = new Set(Object.values(input.conditions).map(({ type }) => type));
  for (const finding of input.findings) {
    // It can clear nothing. On a healthy device these are nearly all findings.
    if (finding.status === false && !remembered.has(finding.type)) continue;
    if (!input.isOfSource(finding)) continue;
    const item = fromFinding(finding, input, rates, levels);
    if (item.status === false && item.instance === undefined) withdrawn.set(item.type, item);
    const key = conditionKey(finding);
    found.set(key, worse(found.get(key), item));
  }
  keepUnreadCounters(input, rates);
  for (const [key, state] of Object.entries(input.conditions)) {
    if (!found.has(key) && withdrawn.has(state.type)) found.set(key, evidenceFor(state, false, input.atMs));
  }
  return { evidence: [...found.values()], rates, levels: withLevels(input.levels, levels) };
}

/** Keeps one evidence per condition, the worst. */
export function mergeEvidence(evidence: readonly Evidence[]): readonly Evidence[] {
  const merged = new Map<string, Evidence>();
  for (const item of evidence) {
    const key = conditionKey(item);
    merged.set(key, worse(merged.get(key), item));
  }
  return [...merged.values()];
}

function fromFinding(finding: Finding, input: EvidenceInput, rates: Record<string, RateSeries>, levels: Map<string, number>): Evidence {
  if (finding.count !== undefined) return fromCounter(finding, input, rates);
  if (finding.level !== undefined) return fromLevel(finding, input, levels);
  return { ...baseOf(finding, input.atMs), status: finding.status };
}

function baseOf({ type, instance, reason, message, severity, remedy }: Finding, atMs: number): Omit<Evidence, 'status'> {
  return { type, instance, atMs, reason, message, severity, remedy };
}

function fromCounter(finding: CountFinding, input: EvidenceInput, rates: Record<string, RateSeries>): Evidence {
  const key = conditionKey(finding);
  const { threshold } = input.policyOf(finding);
  const before = rates[key] ?? (Object.hasOwn(input.rates, key) ? input.rates[key] : undefined);
  const { count: value, ceiling } = finding;
  const series = addSample(before, { value, atMs: input.atMs, ceiling }, threshold.windowMs);
  if (series !== undefined) rates[key] = series;
  const isUsable = Number.isFinite(value) && value >= 0;
  return judged(baseOf(finding, input.atMs), isUsable ? judgeRate(series, threshold, input.atMs) : { status: 'unknown' }, threshold);
}

function fromLevel(finding: LevelFinding, input: EvidenceInput, levels: Map<string, number>): Evidence {
  const key = conditionKey(finding);
  const base = baseOf(finding, input.atMs);
  const level = Number(finding.level);
  if (!Number.isFinite(level)) return { ...base, status: 'unknown' };
  const before = levels.get(key) ?? (Object.hasOwn(input.levels.highest, key) ? input.levels.highest[key] : undefined);
  const highest = Math.max(before ?? level, Number(finding.atLeast ?? level), level);
  levels.set(key, highest);
  if (level === highest) return { ...base, status: false };
  return { ...base, status: true, ...(finding.tellsHighest ? { message: `${base.message} (highest seen: ${highest})` } : {}) };
}

function judged(base: Omit<Evidence, 'status'>, { status, growth }: RateJudgement, threshold: RateThreshold): Evidence {
  if (status !== true || growth === undefined) return { ...base, status };
  const figure = `grew by ${Number(growth.toFixed(1))} within ${formatDuration(millis(threshold.windowMs))}, limit ${threshold.growth}`;
  return { ...base, status, message: `${base.message} (${figure})` };
}

/** Keeps the history of a counter without a finding while the history is still usable: for two windows. */
function keepUnreadCounters(input: EvidenceInput, rates: Record<string, RateSeries>): void {
  for (const key in input.rates) {
    if (rates[key] !== undefined) continue;
    const series = input.rates[key] as RateSeries;
    const { windowMs } = input.policyOf(conditionName(key)).threshold;
    if (input.atMs - series.atMs < 2 * windowMs) rates[key] = series;
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
