import { type Board, boardOf, declaredBy } from '../board/board.ts';
import { familyReadingsIn } from '../model/family-reading.ts';
import { HEALTH_STATES, type HealthState } from '../model/health.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { DeviceFamily } from '../probes/family.ts';
import { type WholeBoard, wholeBoard } from '../server/api/views.ts';
import { nodeName } from './settings.ts';

/** The devices without the readings that no command shows. */
export const BOARD_PATH = '/api/v1/devices?readings=shown';

/** The board in an answer of the API; undefined when another program answered, or an agent of another version. */
export const boardIn = (body: unknown): WholeBoard | undefined => (isBoard(body) ? body : undefined);

/** What a command that read the devices itself knows of them, in the form of the API. */
export function ownBoard(snapshot: Snapshot, families: readonly DeviceFamily[], hasReadings = false): WholeBoard {
  const board = boardOf(snapshot, { nowMs: Date.now(), node: nodeName(), ...declaredBy(families) });
  return wholeBoard(board, snapshot, hasReadings);
}

function isBoard(body: unknown): body is WholeBoard {
  if (!isObject(body) || familyReadingsIn(body) === undefined) return false;
  const { now, takenAt, counts, kubelet, families, expected, fault, problems, unresolved, devices } = body as Partial<
    Record<keyof Board, unknown>
  >;
  return (
    [now, takenAt].every(isTime) &&
    isObject(counts) &&
    ['devices', 'held', 'heldByParts', 'pending'].every((name) => isNumber(counts[name])) &&
    isObject(counts.states) &&
    Object.values(counts.states).every(isNumber) &&
    isObject(kubelet) &&
    isText(kubelet.state) &&
    isNumber(kubelet.kept) &&
    isListOf(families, (one) => isText(one.state) && isNumber(one.devices)) &&
    (expected === undefined || isListOf(expected, (one) => isText(one.family) && isNumber(one.expected) && isOr(isNumber, one.present))) &&
    isOr(isText, fault) &&
    isListOf(problems, (one) => isText(one.code) && isText(one.message) && isOr(isText, one.family) && isOr(isText, one.device)) &&
    isListOf(unresolved, (one) => [...HOLDER, 'deviceId', 'why'].every((name) => isText(one[name]))) &&
    isListOf(devices, isDevice)
  );
}

const HOLDER = ['namespace', 'pod', 'container', 'resource'];

function isDevice({ key, family, id, name, kind, use, aliases, readAt, missingSince, health, incident, holders, shown }: Fields): boolean {
  return (
    [key, family, id, name, kind, use].every(isText) &&
    isListOfTexts(aliases) &&
    isTime(readAt) &&
    isOr(isTime, missingSince) &&
    isObject(health) &&
    HEALTH_STATES.includes(health.state as HealthState) &&
    isOr(isTime, health.since) &&
    isListOf(health.conditions, isCondition) &&
    [health.pending, health.ignored].every((list) => list === undefined || isListOf(list, isCondition)) &&
    (incident === undefined || (isObject(incident) && isText(incident.id) && isListOfTexts(incident.hit))) &&
    isListOf(holders, (one) => HOLDER.every((field) => isText(one[field]))) &&
    isListOf(shown, (one) => isText(one.label) && isText(one.text))
  );
}

function isCondition({ type, instance, severity, reason, message, remedy, since, unverifiedSince, countsAt, recovering }: Fields): boolean {
  return (
    [type, severity, reason, message, remedy].every(isText) &&
    isOr(isText, instance) &&
    isTime(since) &&
    [unverifiedSince, countsAt].every((time) => isOr(isTime, time)) &&
    (recovering === undefined || (isObject(recovering) && isTime(recovering.since) && isTime(recovering.until)))
  );
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null;
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);
const isText = (value: unknown): value is string => typeof value === 'string';
const isTime = (value: unknown): boolean => isText(value) && !Number.isNaN(Date.parse(value));
const isListOfTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isOr = (holds: (value: unknown) => boolean, value: unknown): boolean => value === undefined || holds(value);
const isListOf = (value: unknown, holds: (one: Fields) => boolean): boolean =>
  Array.isArray(value) && value.every((one) => isObject(one) && holds(one));
