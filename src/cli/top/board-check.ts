import type { Board } from '../../board/row.ts';
import { STATE_NAMES } from '../../board/words.ts';

/** True for an answer that can be shown. Another program, or an agent of another version, may listen at the address. */
export function isBoard(body: unknown): body is Board {
  if (!isObject(body)) return false;
  const { nowMs, takenAtMs, counts, kubelet, families, problems, unresolved, rows } = body;
  return (
    isNumber(nowMs) &&
    isNumber(takenAtMs) &&
    isObject(counts) &&
    ['devices', 'held', 'heldByParts', 'pending'].every((name) => isNumber(counts[name])) &&
    isObject(counts.states) &&
    Object.values(counts.states).every(isNumber) &&
    isObject(kubelet) &&
    isText(kubelet.state) &&
    isNumber(kubelet.kept) &&
    isListOf(families, (one) => isText(one.family) && isText(one.state) && isNumber(one.devices)) &&
    isListOf(problems, (one) => isText(one.where) && isText(one.what)) &&
    isListOf(unresolved, (one) => ['namespace', 'pod', 'container', 'resource', 'deviceId', 'why'].every((name) => isText(one[name]))) &&
    isListOf(rows, isRow)
  );
}

function isRow({ key, family, id, name, kind, state, use, conditions, holders, readings }: Fields): boolean {
  return (
    [key, family, id, name, kind, use].every(isText) &&
    isText(state) &&
    Object.hasOwn(STATE_NAMES, state) &&
    isListOf(conditions, isCondition) &&
    isListOf(holders, (one) => ['namespace', 'pod', 'container', 'resource'].every((field) => isText(one[field]))) &&
    isListOf(readings, (one) => isText(one.label) && isText(one.text))
  );
}

function isCondition({ name, severity, reason, message, standing, remedy, sinceMs, recovering }: Fields): boolean {
  return (
    [name, severity, reason, message, remedy].every(isText) &&
    Array.isArray(standing) &&
    standing.every(isText) &&
    isNumber(sinceMs) &&
    (recovering === undefined || (isObject(recovering) && isNumber(recovering.sinceMs) && isNumber(recovering.untilMs)))
  );
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null;
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);
const isText = (value: unknown): value is string => typeof value === 'string';
const isListOf = (value: unknown, holds: (one: Fields) => boolean): boolean =>
  Array.isArray(value) && value.every((one) => isObject(one) && holds(one));
