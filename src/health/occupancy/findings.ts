import type { DeviceUse, LastHolders, UseLimits } from '../../model/device-use.ts';
import type { Finding } from '../../model/health.ts';
import {
  BUSY_WAITING,
  BUSY_WITHOUT_HOLDER,
  DIRTY_AFTER_USE,
  HELD_BY_STRANGER,
  HELD_PORT_DOWN,
  IDLE_HELD,
  SAME_ID,
  STALLED,
} from '../policy/use-conditions.ts';
import { isAllowed, listed, memoryText, processText, shareText, unexplainedEngines, unexplainedMemory } from './explained.ts';

/**
 * Returns all findings of the conditions of use. What is not known gives no finding: a raised condition then stays and none is raised.
 * While the kubelet does not answer, nothing is known. Nor is it of a read from before the present holders: what ran then was of the holders
 * of then. Pure.
 */
export function useFindings(use: DeviceUse, limits: UseLimits): readonly Finding[] {
  if (!use.areHoldersKnown || !use.isReadWithHolders) return [];
  return [...strangerFindings(use, limits), ...leftoverFindings(use, limits), ...heldFindings(use)];
}

/** Judges a device that a pod holds: whether the pod uses it, and whether it can. */
function heldFindings(use: DeviceUse): readonly Finding[] {
  return [...idle(use), ...waits(use), ...ports(use), sharesId(use)];
}

function sharesId({ sameId = [] }: DeviceUse): Finding {
  const status = sameId.length > 0;
  const message = status ? `the kubelet names one id of the device for ${listed(sameId)}` : 'each id has one pod';
  return { type: SAME_ID, status, reason: 'TwoPods', message };
}

function idle({ activity, holders }: DeviceUse): readonly Finding[] {
  if (activity === undefined) return [];
  const isIdle = holders.length === 0 ? false : activity.isIdle;
  if (isIdle === 'unknown') return [];
  return [
    { type: IDLE_HELD, status: isIdle, reason: 'Idle', message: isIdle ? `${heldBy(holders)} and does nothing` : 'it works or is free' },
  ];
}

/** One of the two holds at a time. While the state is unknown, a raised one stays. */
function waits({ waiting, holders }: DeviceUse): readonly Finding[] {
  if (waiting === undefined || waiting.state === 'unknown') return [];
  const { state, sinceMs = 0, lastProgressMs, stepSeconds } = waiting;
  const finding = (type: string, isHeld: boolean, text: string): Finding => ({
    type,
    status: isHeld,
    reason: 'NoProgress',
    message: isHeld
      ? `${heldBy(holders)}, busy, and ${text} since ${timeText(lastProgressMs ?? sinceMs)}`
      : 'it moves on, is idle, is free, or is not judged',
  });
  return [
    finding(BUSY_WAITING, state === 'waiting', 'nothing moves'),
    finding(STALLED, state === 'stalled', `none of its steps of ${stepSeconds} s was seen`),
  ];
}

const timeText = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

function ports({ ports: states, holders, isPart, isPortFaultTold }: DeviceUse): readonly Finding[] {
  if (states.length === 0) return [];
  const isDown = holders.length > 0 && !states.includes(true) && !isPortFaultTold;
  const count = states.length === 1 ? 'its port is' : `its ${states.length} ports are`;
  const finding: Finding = {
    type: HELD_PORT_DOWN,
    status: isDown,
    reason: 'NoPortUp',
    message: isDown ? `${heldBy(holders)}, but ${count} not up` : 'a port is up, or the device has no holder',
  };
  // The port of a function of a card depends on how it is set, not on the cable.
  return [isDown && isPart ? { ...finding, remedy: 'enable-port' } : finding];
}

const heldBy = (holders: readonly string[]): string => `held by ${listed(holders)}`;

/**
 * Judges whether a process uses a device that it does not hold. The processes of a device with parts are those of its parts, so such a
 * device is never accused; it can only be found clean.
 */
function strangerFindings(use: DeviceUse, limits: UseLimits): readonly Finding[] {
  if (!use.isForHoldersOnly) return [];
  const others = use.processes.filter((process) => !isAllowed(process, limits));
  const strangers = others.filter(({ owner }) => owner === 'pod' || owner === 'outside');
  if (strangers.length === 0) {
    const isKnown = use.hasAllProcesses && others.every(({ owner }) => owner !== 'unknown');
    return isKnown ? [{ type: HELD_BY_STRANGER, status: false, reason: 'ProcessOfOtherPod', message: 'no process of a stranger' }] : [];
  }
  if (use.hasParts) return [];
  return [
    {
      type: HELD_BY_STRANGER,
      status: true,
      reason: strangers.some(({ owner }) => owner === 'pod') ? 'ProcessOfOtherPod' : 'ProcessOutsidePods',
      message: `${holdersText(use)}, but it is used by ${listed(strangers.map(processText))}`,
    },
  ];
}

function holdersText({ holders, isHeld }: DeviceUse): string {
  if (holders.length > 0) return `${listed(holders)} holds the device`;
  return isHeld ? 'another pod holds the device' : 'the device has no holder';
}

type Status = boolean | 'unknown';

/** Judges a device that nobody holds: what the last holder left, and work that nobody explains. */
export function leftoverFindings(use: DeviceUse, limits: UseLimits): readonly Finding[] {
  if (!use.isForHoldersOnly) return [];
  return [...busy(use, limits), ...dirty(use, limits)].filter(({ status }) => status === false || !use.hasParts);
}

function busy(use: DeviceUse, limits: UseLimits): readonly Finding[] {
  const finding = (status: Status, reason: string, message: string): readonly Finding[] =>
    status === 'unknown' ? [] : [{ type: BUSY_WITHOUT_HOLDER, status, reason, message }];
  if (use.isHeld) return finding(false, 'EnginesBusy', 'a pod holds the device');
  // Other conditions report a process that is not allowed.
  if (use.processes.some((process) => !isAllowed(process, limits))) return finding(false, 'EnginesBusy', 'a process explains the work');
  const engines = unexplainedEngines(use, use.processes);
  const memory = use.lastHolders === undefined ? unexplainedMemory(use, use.processes, limits) : 0;
  if (engines !== 'unknown' && engines.size > 0) {
    const text = [...engines].map(([engine, share]) => shareText(engine, share)).join(', ');
    return finding(use.hasAllProcesses || 'unknown', 'EnginesBusy', `the device has no holder, and no process explains its work: ${text}`);
  }
  if (memory !== 'unknown' && memory > 0) {
    const message = `the device has no holder, and no process explains ${memoryText(memory)} of its memory`;
    return finding(use.hasAllProcesses || 'unknown', 'MemoryInUse', message);
  }
  return finding(engines === 'unknown' || memory === 'unknown' ? 'unknown' : false, 'EnginesBusy', 'no process uses the device');
}

function dirty(use: DeviceUse, limits: UseLimits): readonly Finding[] {
  const finding = (status: Status, reason: string, message: string): readonly Finding[] =>
    status === 'unknown' ? [] : [{ type: DIRTY_AFTER_USE, status, reason, message }];
  const { lastHolders, processes } = use;
  if (use.isHeld || lastHolders?.endedAtMs === undefined) return finding(false, 'ProcessLeft', 'no holder has ended');
  const others = processes.filter((process) => !isAllowed(process, limits));
  const left = others.filter(({ owner }) => owner === 'former');
  if (left.length > 0) return finding(true, 'ProcessLeft', `${endText(lastHolders)}, but it left ${listed(left.map(processText))}`);
  const memory = unexplainedMemory(use, processes, limits);
  if (memory === 'unknown') return [];
  if (memory > 0) {
    const message = `${endText(lastHolders)}, but ${memoryText(memory)} of memory that no process explains are left`;
    return finding(use.hasAllProcesses || 'unknown', 'MemoryLeft', message);
  }
  const isKnown = use.hasAllProcesses && others.every(({ owner }) => owner !== 'unknown');
  return finding(isKnown ? false : 'unknown', 'ProcessLeft', 'nothing is left');
}

function endText({ pods, endedAtMs = 0 }: LastHolders): string {
  const names = listed(pods.map(({ namespace, pod }) => `${namespace}/${pod}`));
  return `the last holder, ${names}, was gone at ${new Date(endedAtMs).toISOString()}`;
}
