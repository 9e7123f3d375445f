import { formatDuration, millis } from '../model/duration.ts';
import type { Finding, Severity } from '../model/health.ts';
import { type Evidence, silence } from './conditions.ts';
import { type Levels, withLevels } from './levels.ts';
import { type ConditionState, conditionKey, conditionName } from './memory.ts';
import type { ConditionPolicy, RateThreshold } from './policy.ts';
import { addSample, judgeRate, type RateJudgement, type RateSeries } from './rate.ts';

export interface EvidenceInput {
  readonly findings: readonly Finding[];
  /** Conditions and counters remembered from before. */
  readonly conditions: Readonly<Record<string, ConditionState>>;
  readonly rates: Readonly<Record<string, RateSeries>>;
  readonly levels: Levels;
  /** When the findings were read. */
  readonly readAtMs: number;
  readonly nowMs: number;
  policyOf(condition: { readonly type: string; readonly instance?: string }): ConditionPolicy;
}

export interface EvidenceOutput {
  readonly evidence: readonly Evidence[];
  readonly rates: Readonly<Record<string, RateSeries>>;
  readonly levels: Levels;
}

/** Turns the findings of one reading into evidence: counters by their growth, levels by the highest, silence by what it means for the class. */
export function evidenceOf(input: EvidenceInput): EvidenceOutput {
  const rates: Record<string, RateSeries> = {};
  const found = new Map<string, Evidence>();
  const levels = new Map<string, number>();
  const withdrawn = new Set<string>();
  for (const finding of input.findings) {
    const key = conditionKey(finding);
    const item = fromFinding(finding, key, input, rates, levels);
    if (item.status === false && item.instance === undefined) withdrawn.add(item.type);
    found.set(key, worse(found.get(key), item));
  }
  keepUnreadCounters(input, rates);
  for (const [key, state] of Object.entries(input.conditions)) {
    if (!found.has(key)) found.set(key, fromSilence(key, state, input, rates, withdrawn.has(state.type)));
  }
  return { evidence: [...found.values()], rates, levels: withLevels(input.levels, levels) };
}

/** One evidence per condition. */
export function mergeEvidence(evidence: readonly Evidence[]): readonly Evidence[] {
  const merged = new Map<string, Evidence>();
  for (const item of evidence) merged.set(conditionKey(item), worse(merged.get(conditionKey(item)), item));
  return [...merged.values()];
}

/** Evidence when nothing could be read: what was known stays. */
export function nothingKnown(conditions: Readonly<Record<string, ConditionState>>): readonly Evidence[] {
  return Object.values(conditions).map((state) => silence(state, 'unknown'));
}

function fromFinding(
  finding: Finding,
  key: string,
  input: EvidenceInput,
  rates: Record<string, RateSeries>,
  levels: Map<string, number>,
): Evidence {
  if (finding.status === undefined && finding.count !== undefined) return fromCounter(finding, key, input, rates);
  if (finding.status === undefined && finding.level !== undefined) return fromLevel(finding, finding.level, key, input, levels);
  return fromStatus(finding);
}

function fromStatus(finding: Finding): Evidence {
  return { ...told(finding), status: finding.status ?? 'unknown' };
}

function told(finding: Finding): Omit<Evidence, 'status'> {
  const { type, instance, reason, message, severity, remedy } = finding;
  return {
    type,
    ...(instance === undefined ? {} : { instance }),
    reason,
    message,
    ...(severity === undefined ? {} : { severity }),
    ...(remedy === undefined ? {} : { remedy }),
  };
}

function fromCounter(finding: Finding, key: string, input: EvidenceInput, rates: Record<string, RateSeries>): Evidence {
  const { threshold } = input.policyOf(finding);
  const before = rates[key] ?? (Object.hasOwn(input.rates, key) ? input.rates[key] : undefined);
  const sample = { value: finding.count as number, atMs: input.readAtMs };
  const ceiling = finding.ceiling === undefined ? {} : { ceiling: finding.ceiling };
  const series = addSample(before, { ...sample, ...ceiling }, threshold.windowMs);
  if (series !== undefined) rates[key] = series;
  const usable = Number.isFinite(sample.value) && sample.value >= 0;
  return judged(told(finding), usable ? judgeRate(series, threshold, input.nowMs) : { status: 'unknown' }, threshold);
}

function fromLevel(finding: Finding, level: number, key: string, input: EvidenceInput, levels: Map<string, number>): Evidence {
  if (!Number.isFinite(level)) return { ...told(finding), status: 'unknown' };
  const before = levels.get(key) ?? (Object.hasOwn(input.levels.highest, key) ? input.levels.highest[key] : undefined);
  const highest = Math.max(before ?? level, level);
  levels.set(key, highest);
  const base = told(finding);
  if (level === highest) return { ...base, status: false };
  return { ...base, status: true, message: `${base.message} (highest seen: ${highest})` };
}

function judged(base: Omit<Evidence, 'status'>, judgement: RateJudgement, threshold: RateThreshold): Evidence {
  const { status, growth, fallsAtMs } = judgement;
  if (status !== true || growth === undefined) return { ...base, status };
  const figure = `grew by ${Number(growth.toFixed(1))} within ${formatDuration(millis(threshold.windowMs))}, limit ${threshold.growth}`;
  return { ...base, status, message: `${base.message} (${figure})`, ...(fallsAtMs === undefined ? {} : { changesAtMs: fallsAtMs }) };
}

/** A counter that this reading lacks keeps its history while that can still tell something. */
function keepUnreadCounters(input: EvidenceInput, rates: Record<string, RateSeries>): void {
  for (const [key, series] of Object.entries(input.rates)) {
    if (rates[key] !== undefined) continue;
    const { windowMs } = input.policyOf(conditionName(key)).threshold;
    if (input.nowMs - series.atMs < 2 * windowMs) rates[key] = series;
  }
}

function fromSilence(
  key: string,
  state: ConditionState,
  input: EvidenceInput,
  rates: Readonly<Record<string, RateSeries>>,
  withdrawn: boolean,
): Evidence {
  if (withdrawn) return silence(state, false);
  const policy = input.policyOf(state);
  if (state.carried === true && policy.outlivesProbe) return silence(state, 'unknown');
  const series = rates[key];
  if (policy.class !== 'rate' || series === undefined) return silence(state, false);
  const { status, fallsAtMs } = judgeRate(series, policy.threshold, input.nowMs);
  const base = silence(state, false);
  if (status !== true) return base;
  const { severity, remedy } = state;
  return {
    ...base,
    status,
    ...(severity === undefined ? {} : { severity }),
    ...(remedy === undefined ? {} : { remedy }),
    ...(fallsAtMs === undefined ? {} : { changesAtMs: fallsAtMs }),
  };
}

const RANK: Readonly<Record<Severity, number>> = { fatal: 3, degraded: 2, info: 1 };

/** Of two findings on the same condition, the one that says more: true before unknown before false, then by severity. */
function worse(a: Evidence | undefined, b: Evidence): Evidence {
  if (a === undefined) return b;
  const weight = (item: Evidence): number =>
    (item.status === true ? 20 : item.status === 'unknown' ? 10 : 0) + (item.severity === undefined ? 0 : RANK[item.severity]);
  return weight(b) > weight(a) ? b : a;
}
