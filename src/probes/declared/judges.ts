import { defined } from '../../model/defined.ts';
import type { Finding } from '../../model/health.ts';
import type { Value } from '../../model/metric.ts';
import { fill, plain } from '../kit/template.ts';
import type { DeclaredCondition, DeclaredReading, DeclaredSource } from './declaration.ts';
import type { Heartbeats } from './heartbeats.ts';
import type { SourceResult, SourceValue } from './source-reader.ts';
import { numberOf } from './texts.ts';

/** Reason of a condition that does not hold, and of one that could not be checked. */
export const [NORMAL, UNREADABLE] = ['Normal', 'Unreadable'];

export const reasonOf = ({ reason, type }: DeclaredCondition): string => reason ?? type;

/** The source of a condition: its own, or that of the reading that it names. */
export function sourceOf(condition: DeclaredCondition, readings: readonly DeclaredReading[]): DeclaredSource {
  return condition.reading === undefined ? condition : (readings.find(({ metric }) => metric === condition.reading) ?? condition);
}

/** The source of the limit of a condition; undefined for a limit that is a number. */
export function limitOf({ above, below }: DeclaredCondition): DeclaredSource | undefined {
  const limit = above ?? below;
  return typeof limit === 'object' ? limit : undefined;
}

/** What the judge of one condition on one device looks at. */
export interface Sight {
  readonly source: DeclaredSource;
  readonly values: readonly SourceValue[];
  /** Of the reading that the condition names. */
  readonly labels: DeclaredReading['labels'] | undefined;
  /** What the source of a limit gave. */
  readonly limits: SourceResult | undefined;
  readonly beats: Heartbeats;
}

/** Judges the values of one condition on one device. Without any value the condition is unknown: it is never denied by not looking. */
export function findingsOf(condition: DeclaredCondition, sight: Sight): Finding[] {
  const { values, limits, labels } = sight;
  const noLimit = limits?.values.length === 0;
  if (values.length === 0 || noLimit) {
    if ((condition.growth ?? condition.level) !== undefined) return [];
    return [unknown(condition, noLimit && values.length > 0 ? 'no limit can be read' : 'no value can be read')];
  }
  return values.flatMap((value): Finding[] => {
    const instance = instanceOf(condition, value, labels);
    const finding = judge(condition, sight, value);
    return finding === undefined ? [] : [{ ...finding, ...defined({ instance }) }];
  });
}

export const unknown = ({ type }: DeclaredCondition, message: string): Finding => ({
  type,
  reason: UNREADABLE,
  status: 'unknown',
  message,
});

function instanceOf({ instance }: DeclaredCondition, { words }: SourceValue, labels: DeclaredReading['labels'] = {}): string | undefined {
  if (instance !== undefined) return fill(instance, words);
  const varied = Object.values(labels).filter((template) => template.includes('{'));
  const parts = varied.length > 0 ? varied.map((template) => fill(template, words)) : Object.values(words);
  const text = parts.filter((part) => part !== undefined && part !== '').join('-');
  return text === '' ? undefined : plain(text);
}

function judge(condition: DeclaredCondition, sight: Sight, value: SourceValue): Finding | undefined {
  const { type, growth, level, ceiling, equals, still, message: template } = condition;
  const { text, place, words } = value;
  const name = place.split('/').slice(-2).join('/');
  const reason = reasonOf(condition);
  const number = numberOf(text, sight.source);
  const said = (standard: string, limit?: Value): string =>
    template === undefined
      ? standard
      : (fill(template, { ...words, value: plain(equals === undefined ? String(number ?? text) : text), limit: String(limit) }) ??
        standard);
  if (growth !== undefined || level !== undefined) {
    if (number === undefined || number < 0) return undefined;
    const counted = { type, reason, message: said(`${name} is ${number}`) };
    if (level !== undefined) return { ...counted, level: Number(number), tellsHighest: true };
    return { ...counted, count: Number(number), ...defined({ ceiling }) };
  }
  if (still !== undefined) {
    const { isStalled, unchangedMs } = sight.beats.see(`${type} ${place}`, text, still);
    const message = said(`${name} is ${plain(text)}${unchangedMs === 0 ? '' : ', and has not changed'}`);
    return { type, reason: isStalled === 'unknown' ? UNREADABLE : isStalled ? reason : NORMAL, status: isStalled, message };
  }
  const limit = limitFor(condition, value, sight.limits);
  // A part without a limit is not judged.
  if (limit === 'none') return undefined;
  const holds = limit === undefined ? undefined : doesHold(condition, text, number, limit);
  if (holds === undefined) return unknown(condition, `${limit === undefined ? `the limit of ${name}` : name} holds no number`);
  const against = limitOf(condition) === undefined ? '' : `, the limit is ${limit}`;
  return { type, reason: holds ? reason : NORMAL, status: holds, message: said(`${name} is ${plain(text)}${against}`, limit) };
}

/** The limit of a value: a number, or the value of the other source with the same wildcards. Undefined when it is not known. */
function limitFor({ above, below }: DeclaredCondition, { words }: SourceValue, read: SourceResult | undefined): Value | 'none' | undefined {
  const limit = above ?? below ?? 0;
  if (typeof limit === 'number') return limit;
  const found = read?.values.find((other) => Object.entries(other.words).every(([word, text]) => words[word] === text));
  if (found === undefined) return read?.faults.length === 0 ? 'none' : undefined;
  return numberOf(found.text, limit);
}

/** Undefined when the text is no number and the condition needs one. */
function doesHold(
  { equals, above, below, bits }: DeclaredCondition,
  text: string,
  value: Value | undefined,
  limit: Value,
): boolean | undefined {
  if (equals !== undefined)
    return equals.some((one) => String(one) === text || (typeof one === 'number' && value !== undefined && Number(value) === one));
  if (value === undefined) return undefined;
  if (bits !== undefined) return Number.isInteger(Number(value)) ? (BigInt(value) & BigInt(bits)) !== 0n : undefined;
  if (above !== undefined) return value > limit;
  return below !== undefined ? value < limit : undefined;
}
