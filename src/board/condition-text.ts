import { conditionName, phasesOf } from '../model/condition-text.ts';
import { durationText } from '../model/duration.ts';
import { type ConditionView, conditionsOf, type DeviceView, type HealthView, remedyOf } from './device-view.ts';
import { clockText } from './units.ts';
import { REMEDY_TEXTS } from './words.ts';

/** A condition as the page of a device, `top`, `health` and `explain` tell it: all of them use these words. */
export interface ConditionText {
  /** `PortDown (1)`. */
  readonly name: string;
  /** `fatal, LinkPolling, pending`. */
  readonly note: string;
  readonly sentences: readonly string[];
  /** The remedy in words. Absent when there is none, or when another condition of the device has it. */
  readonly advice: string | undefined;
}

/** `PortDown (1)`: as people see it. Commands and the configuration take `PortDown/1`. */
export const nameWithInstance = ({ type, instance }: Pick<ConditionView, 'type' | 'instance'>): string =>
  instance === undefined ? type : `${type} (${instance})`;

export function conditionText(device: Pick<DeviceView, 'health'>, condition: ConditionView, nowMs: number): ConditionText {
  const { reason, ofWhole } = condition;
  return {
    name: nameWithInstance(condition),
    note: [effectOf(device, condition), reason, ...phasesOf(condition)].join(', '),
    sentences: [...conditionSentences(device, condition, nowMs), ...(ofWhole === undefined ? [] : [`The same as ${ofWhole}.`])],
    advice: condition === lastAsking(device) ? REMEDY_TEXTS[condition.remedy] : undefined,
  };
}

/** The one condition that shows the remedy of the device: the last that asks for it. A condition for information shows it only when no other asks. */
function lastAsking(device: Pick<DeviceView, 'health'>): ConditionView | undefined {
  const asking = conditionsOf(device).filter(({ remedy }) => remedy === remedyOf(device));
  return asking.findLast(({ severity }) => severity !== 'info') ?? asking.at(-1);
}

/** A fatal condition that leaves the state unknown says that the state could not be read, and not that the device is broken. */
const effectOf = ({ health }: Pick<DeviceView, 'health'>, { severity, countsAt }: Pick<ConditionView, 'severity' | 'countsAt'>): string =>
  severity === 'fatal' && countsAt === undefined && health.state === 'unknown' ? 'state unknown' : severity;

/** The message of a condition for one line of a table. The message of a condition that ended is quoted as past. */
export const shortMessage = ({ message, recovering }: Pick<ConditionView, 'message' | 'recovering'>): string =>
  recovering === undefined ? message : `it was '${message}'`;

const isLasting = ({ severity, recovering }: ConditionView): boolean => severity !== 'info' && recovering === undefined;

/** Returns sentences with the message and the status of a condition. The message was written while the condition held. */
function conditionSentences(
  device: Pick<DeviceView, 'health'>,
  { message, unverifiedSince, recovering, countsAt }: Pick<ConditionView, 'message' | 'unverifiedSince' | 'recovering' | 'countsAt'>,
  nowMs: number,
): readonly string[] {
  const clock = (time: string): string => clockText(Date.parse(time), nowMs);
  const unverified = (question: string): string => `Since ${clock(unverifiedSince ?? '')} no reading shows whether it ${question}.`;
  const isUnverified = unverifiedSince !== undefined;
  const sentence = /[.!?]$/.test(message) ? message : `${message}.`;
  if (countsAt !== undefined) {
    const unknown = (): string => `${unverified('still holds')} Until a reading shows that it does, it does not count.`;
    return [sentence, isUnverified ? unknown() : `It does not count yet. If it continues, it counts from ${clock(countsAt)}.`];
  }
  if (recovering === undefined) return isUnverified ? [sentence, unverified('still holds')] : [message];
  const withdrawn = `If it does not return, the first reading after ${clock(recovering.until)} withdraws it.`;
  // A fault that lasts has its own remedy, which this sentence would contradict.
  const nothing = device.health.conditions.some(isLasting) ? '' : ' No action is needed.';
  return [
    `It ended ${durationText(nowMs - Date.parse(recovering.since))} ago. Its last message was '${message}'.`,
    isUnverified ? `${unverified('returned')} Until a reading shows that it did not, it counts.` : `${withdrawn}${nothing}`,
  ];
}

/** How a condition counts, in few words: its severity, or when it counts, is withdrawn, or was last seen. */
export function phaseNote(device: Pick<DeviceView, 'health'>, condition: ConditionView, nowMs: number): string {
  const { countsAt, recovering, unverifiedSince } = condition;
  const clock = (time: string): string => clockText(Date.parse(time), nowMs).replace(' UTC', '');
  const unseen = unverifiedSince === undefined ? '' : `, not seen since ${clock(unverifiedSince)}`;
  if (countsAt !== undefined) return unseen === '' ? `pending, counts from ${clock(countsAt)}` : `pending${unseen}`;
  if (recovering === undefined) return `${effectOf(device, condition)}${unseen}`;
  const ended = `ended ${durationText(nowMs - Date.parse(recovering.since))} ago`;
  return unseen === '' ? `${ended}, withdrawn from ${clock(recovering.until)}` : `${ended}${unseen}`;
}

/** Further texts about the health of a device, below its conditions. */
export function healthNotes({ unchecked, ignored = [] }: HealthView): readonly string[] {
  return [
    ...(unchecked === undefined ? [] : [`Not checked: ${unchecked.join(', ')}. No read could check it yet.`]),
    ...ignored.map((one) => `${conditionName(one)} is ignored until ${one.ignoredUntil.slice(0, 10)}: ${one.ignoreReason}`),
  ];
}
