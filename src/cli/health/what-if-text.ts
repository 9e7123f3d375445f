import type { Interval, Span } from '../../health/rehearsal/intervals.ts';
import type { Outcome, Rehearsal, RehearsedDevice } from '../../health/rehearsal/rehearsal.ts';
import { formatDuration, millis } from '../../model/duration.ts';
import { visible } from '../../model/one-line.ts';
import { textTable } from '../text-table.ts';

/** The differences as text: a table for each device that differs, and the totals of the node. `file`: of the other policy. */
export function rehearsalText(rehearsal: Rehearsal, file: string): string {
  const name = visible(file);
  const { devices, present, other } = rehearsal;
  const different = devices.filter(({ isDifferent }) => isDifferent);
  return [
    recordText(rehearsal),
    ...different.map((device) => deviceText(device, name)),
    different.length === 0
      ? `No device differs under ${name}.\n`
      : `${different.length} of ${devices.length} devices differ under ${name}.\n`,
    `Out of service under the present policy: ${outcomeText(present)}\n`,
    `Out of service under ${name}: ${outcomeText(other)}\n`,
  ].join('');
}

/** What the record covers, and what it does not. */
function recordText({ fromMs, toMs, gaps, unlikeRecord, policyChangesMs }: Rehearsal): string {
  const gapMs = gaps.reduce((sum, gap) => sum + lengthOf(gap), 0);
  const missing = gaps.length === 0 ? '' : `; in ${gaps.length} ${noun(gaps.length, 'gap')} of ${duration(gapMs)} in all no agent ran`;
  const changes = policyChangesMs.length === 0 ? '' : `, after changes of the policy at ${policyChangesMs.map(time).join(', ')}`;
  const unlike =
    unlikeRecord === 0
      ? ''
      : `The present policy would have given other verdicts than the agent: ${unlikeRecord} ${noun(unlikeRecord, 'event')} differ${changes}.\n`;
  return `The record is from ${time(fromMs)} to ${time(toMs)}${missing}.\n${unlike}`;
}

function deviceText({ key, present, other }: RehearsedDevice, name: string): string {
  const rows = [...rowsOf('present', present, other), ...rowsOf(name, other, present)];
  return `\n${visible(key)}\n${textTable([['POLICY', 'FROM', 'FOR', 'STATE', 'KUBELET', 'CONDITIONS', 'PODS'], ...rows])}\n`;
}

/** The intervals that the other policy does not have. A device in service without conditions needs no line. */
function rowsOf(policy: string, intervals: readonly Interval[], others: readonly Interval[]): readonly (readonly string[])[] {
  const nameOf = ({ fromMs, toMs, state, isOut }: Interval): string => `${fromMs} ${toMs} ${state} ${isOut}`;
  const known = new Set(others.map(nameOf));
  return intervals
    .filter((interval) => interval.state !== 'healthy' && !known.has(nameOf(interval)))
    .map((interval) => [
      policy,
      time(interval.fromMs),
      `${duration(lengthOf(interval))}${interval.isOpen === true ? ', continues' : ''}`,
      interval.state,
      interval.isOut ? 'Unhealthy' : 'Healthy',
      interval.conditions.join(', '),
      podsOf(interval).join(', '),
    ]);
}

function outcomeText({ outMs, outages, podsHit }: Outcome): string {
  if (outages === 0) return '0 device hours';
  const pods = podsHit.length === 0 ? '' : `; ${podsHit.length} ${noun(podsHit.length, 'pod')} hit: ${visible(podsHit.join(', '))}`;
  return `${hoursOf(outMs)} device hours in ${outages} ${noun(outages, 'outage')}${pods}`;
}

/** The differences as JSON, in seconds and with times in ISO 8601. A device that does not differ is left out. */
export function rehearsalJson({
  fromMs,
  toMs,
  gaps,
  devices,
  present,
  other,
  unlikeRecord,
  policyChangesMs,
  brokenRecords,
}: Rehearsal): string {
  const answer = {
    from: time(fromMs),
    to: time(toMs),
    gaps: gaps.map((gap) => ({ from: time(gap.fromMs), to: time(gap.toMs) })),
    differs: devices.some(({ isDifferent }) => isDifferent),
    present: outcomeJson(present),
    other: outcomeJson(other),
    devices: devices
      .filter(({ isDifferent }) => isDifferent)
      .map((device) => ({ device: device.key, present: device.present.map(intervalJson), other: device.other.map(intervalJson) })),
    record: { unlikePresent: unlikeRecord, policyChanges: policyChangesMs.map(time), broken: brokenRecords },
  };
  return `${JSON.stringify(answer, null, 2)}\n`;
}

const outcomeJson = ({ outMs, outages, podsHit }: Outcome) => ({ outOfServiceSeconds: outMs / 1_000, outages, podsHit });

function intervalJson(interval: Interval) {
  const { fromMs, toMs, state, isOut, conditions, holders, isOpen = false } = interval;
  return {
    from: time(fromMs),
    to: time(toMs),
    seconds: (toMs - fromMs) / 1_000,
    isOpen,
    state,
    kubelet: isOut ? 'Unhealthy' : 'Healthy',
    conditions,
    holders,
  };
}

const podsOf = ({ holders }: Interval): readonly string[] =>
  [...new Set(holders.map(({ namespace, pod }) => `${namespace}/${pod}`))].sort();
const lengthOf = ({ fromMs, toMs }: Span): number => toMs - fromMs;
const noun = (count: number, one: string): string => (count === 1 ? one : `${one}s`);
const time = (ms: number): string => new Date(ms).toISOString();
const duration = (ms: number): string => formatDuration(millis(Math.round(ms / 1_000) * 1_000));
const hoursOf = (ms: number): string => String(Number((ms / 3_600_000).toFixed(3)));
