import { type Millis, parseDuration } from '../../model/duration.ts';
import type { ConditionSpec, Finding } from '../../model/health.ts';
import type { Value } from '../../model/metric.ts';
import { hwmonCondition } from '../kit/hwmon.ts';
import { pcieConditions } from '../kit/pcie/health.ts';
import type { Declaration, DeclaredCondition, DeclaredReading, DeclaredSource } from './declaration.ts';
import type { SourceValue } from './source-reader.ts';
import { fill, plain } from './template.ts';
import { numberOf } from './value.ts';

/** Reason of a condition that does not hold, and of one that could not be checked. */
const [NORMAL, UNREADABLE] = ['Normal', 'Unreadable'];

/** The conditions of a declaration. */
export function conditionsOf(declaration: Declaration): readonly ConditionSpec[] {
  const own = (declaration.conditions ?? []).map((condition): ConditionSpec => {
    const { type, severity, meaning, remedy, source, growth } = condition;
    return {
      type,
      class: classOf(condition),
      severity,
      reasons: growth === undefined ? [...new Set([reasonOf(condition), NORMAL, UNREADABLE])] : [reasonOf(condition)],
      meaning,
      remedy,
      source,
      ...time('forMs', condition.for),
      ...time('recoveryMs', condition.recovery),
      ...(growth === undefined ? {} : { threshold: { growth: growth.above, windowMs: parseDuration(growth.within) ?? 0 } }),
    };
  });
  return [...own, ...(declaration.hwmon === true ? [hwmonCondition] : []), ...(declaration.pcie === true ? pcieConditions : [])];
}

const time = <K extends string>(name: K, text: string | undefined): Partial<Record<K, Millis>> => {
  const value = text === undefined ? undefined : parseDuration(text);
  return value === undefined ? {} : ({ [name]: value } as Record<K, Millis>);
};

function classOf({ growth, latched, progress }: DeclaredCondition): ConditionSpec['class'] {
  if (growth !== undefined) return 'rate';
  if (latched === true) return 'latched';
  return progress === true ? 'in-progress' : 'self-clearing';
}

const reasonOf = ({ reason, type }: DeclaredCondition): string => reason ?? type;

/** The source of a condition: its own, or that of the reading that it names. */
export function sourceOf(condition: DeclaredCondition, readings: readonly DeclaredReading[]): DeclaredSource {
  return condition.reading === undefined ? condition : (readings.find(({ metric }) => metric === condition.reading) ?? condition);
}

/** Judges the values of one condition on one device. Without any value the condition is unknown: it is never denied by not looking. */
export function findingsOf(
  condition: DeclaredCondition,
  source: DeclaredSource,
  values: readonly SourceValue[],
  labels?: DeclaredReading['labels'],
): Finding[] {
  const { type } = condition;
  if (values.length === 0) {
    if (condition.growth !== undefined) return [];
    return [{ type, reason: UNREADABLE, status: 'unknown', message: 'no value can be read' }];
  }
  return values.flatMap((value): Finding[] => {
    const instance = instanceOf(condition, value, labels);
    const finding = judge(condition, source, value);
    return finding === undefined ? [] : [{ ...finding, ...(instance === undefined ? {} : { instance }) }];
  });
}

function instanceOf({ instance }: DeclaredCondition, { words }: SourceValue, labels: DeclaredReading['labels'] = {}): string | undefined {
  if (instance !== undefined) return fill(instance, words);
  const varied = Object.values(labels).filter((template) => template.includes('{'));
  const parts = varied.length > 0 ? varied.map((template) => fill(template, words)) : Object.values(words);
  const text = parts.filter((part) => part !== undefined && part !== '').join('-');
  return text === '' ? undefined : plain(text);
}

function judge(condition: DeclaredCondition, source: DeclaredSource, { text, place }: SourceValue): Finding | undefined {
  const { type, growth, ceiling } = condition;
  const name = place.split('/').slice(-2).join('/');
  const reason = reasonOf(condition);
  const message = `${name} is ${plain(text)}`;
  if (growth !== undefined) {
    const value = numberOf(text, source);
    if (value === undefined || value < 0) return undefined;
    return { type, reason, message: `${name} is ${value}`, count: Number(value), ...(ceiling === undefined ? {} : { ceiling }) };
  }
  const holds = doesHold(condition, text, numberOf(text, source));
  if (holds === undefined) return { type, reason: UNREADABLE, status: 'unknown', message: `${name} holds no number` };
  return { type, reason: holds ? reason : NORMAL, status: holds, message };
}

/** Undefined when the text is no number and the condition needs one. */
function doesHold({ equals, above, below, bits }: DeclaredCondition, text: string, value: Value | undefined): boolean | undefined {
  if (equals !== undefined)
    return equals.some((one) => String(one) === text || (typeof one === 'number' && value !== undefined && Number(value) === one));
  if (value === undefined) return undefined;
  if (bits !== undefined) return Number.isInteger(Number(value)) ? (BigInt(value) & BigInt(bits)) !== 0n : undefined;
  if (above !== undefined) return value > above;
  return below !== undefined ? value < below : undefined;
}
