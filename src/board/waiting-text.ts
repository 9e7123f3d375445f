import { durationText } from '../model/duration.ts';
import type { ContainerWaiting } from '../model/usage.ts';

/** Whether a container moves on, since when not, and how long its steps were: the rest of a sentence that begins with its name. */
export function waitingText(one: ContainerWaiting, nowMs: number): string {
  return `${stateText(one)}${progressText(one, nowMs)}${stepText(one)}`;
}

function stateText({ state, unknown }: ContainerWaiting): string {
  if (state === 'unknown') return `is not known to move or to wait: ${unknown ?? 'something was not read'}`;
  if (state === 'not-waiting') return 'does not wait';
  return state === 'stalled' ? 'stalled: busy, but its steps have ended' : 'waits: busy, but nothing moves';
}

const progressText = ({ lastProgressMs }: ContainerWaiting, nowMs: number): string =>
  lastProgressMs === undefined
    ? ''
    : `, last progress ${durationText(Math.max(0, Math.floor((nowMs - lastProgressMs) / 1_000)) * 1_000)} ago`;

const stepText = ({ stepSeconds }: ContainerWaiting): string =>
  stepSeconds === undefined ? '' : `, steps of about ${durationText(stepSeconds * 1_000)}`;
