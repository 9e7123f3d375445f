import { notPrometheus, PrometheusTrouble } from './trouble.ts';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

export interface Curve {
  readonly labels: Labels;
  readonly points: readonly (readonly [seconds: number, value: number])[];
}

export interface Answer<Row> {
  readonly rows: readonly Row[];
  /** What Prometheus says about the answer. With one, rows can be absent. */
  readonly warnings: readonly string[];
}

interface Data {
  readonly resultType?: unknown;
  readonly result?: unknown;
}

/** Returns the samples of an instant query. A scalar is one sample without labels. */
export function samplesOf(body: unknown): Answer<Sample> {
  const { data, warnings } = dataOf(body);
  if (data.resultType === 'scalar') return { rows: [{ labels: {}, value: pointOf(data.result)[1] }], warnings };
  const rows = listOf(data, 'vector').map((row) => ({ labels: labelsOf(row.metric), value: pointOf(row.value)[1] }));
  return { rows: unique(rows), warnings };
}

export function curvesOf(body: unknown): Answer<Curve> {
  const { data, warnings } = dataOf(body);
  const rows = listOf(data, 'matrix').map(({ metric, values }) => {
    if (!Array.isArray(values)) throw notPrometheus('a series has no values');
    return { labels: labelsOf(metric), points: values.map(pointOf) };
  });
  return { rows: unique(rows), warnings };
}

/** Returns the error that an answer of Prometheus tells. */
export function errorIn(body: unknown): string | undefined {
  const { status, error } = (body ?? {}) as { readonly status?: unknown; readonly error?: unknown };
  return status === 'error' && typeof error === 'string' ? error : undefined;
}

function dataOf(body: unknown): { readonly data: Data; readonly warnings: readonly string[] } {
  const { status, data, warnings, infos } = (body ?? {}) as Readonly<Record<string, unknown>>;
  const error = errorIn(body);
  if (error !== undefined) throw new PrometheusTrouble(`it cannot answer: ${error}`, 'See the log of Prometheus.');
  if (status !== 'success' || typeof data !== 'object' || data === null) throw notPrometheus('the answer is none of the query API');
  return { data, warnings: [...textsOf(warnings), ...textsOf(infos)] };
}

const textsOf = (value: unknown): readonly string[] => (Array.isArray(value) ? value.filter((text) => typeof text === 'string') : []);

function listOf({ resultType, result }: Data, expected: string): readonly Readonly<Record<string, unknown>>[] {
  if (resultType !== expected || !Array.isArray(result)) throw notPrometheus(`the answer is no ${expected}`);
  if (!result.every((row) => typeof row === 'object' && row !== null)) throw notPrometheus('a series is no object');
  return result;
}

function labelsOf(metric: unknown): Labels {
  if (typeof metric !== 'object' || metric === null || !Object.values(metric).every((value) => typeof value === 'string'))
    throw notPrometheus('a series has no labels');
  return metric as Labels;
}

/** Values are text, because JSON has no NaN. */
function pointOf(point: unknown): readonly [number, number] {
  const [seconds, text] = Array.isArray(point) && point.length === 2 ? point : [];
  if (typeof seconds !== 'number' || typeof text !== 'string' || text.trim() === '') throw notPrometheus('a sample is none');
  const value = Number(text.replace(/^([+-]?)Inf$/, '$1Infinity'));
  if (Number.isNaN(value) && text !== 'NaN') throw notPrometheus('a sample is no number');
  return [seconds, value];
}

/** A proxy that joins several servers can send a series twice. It must not count twice. */
function unique<Row extends { readonly labels: Labels }>(rows: readonly Row[]): readonly Row[] {
  const keyOf = ({ labels }: Row): string => JSON.stringify(Object.entries(labels).toSorted());
  return [...new Map(rows.map((row) => [keyOf(row), row])).values()];
}
