import type { DeviceUse, DeviceUser, UseLimits } from '../../model/device-use.ts';
import type { Finding } from '../../model/health.ts';
import { BUSY_WITHOUT_HOLDER, DIRTY_AFTER_USE } from '../policy/use-conditions.ts';
import { isAllowed, unexplainedEngines, unexplainedMemory } from './explained.ts';
import { listed, memoryText, processText, shareText } from './words.ts';

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
  // Other conditions tell of a process that is not allowed.
  if (use.processes.some((process) => !isAllowed(process, limits))) return finding(false, 'EnginesBusy', 'a process explains the work');
  const engines = unexplainedEngines(use, use.processes);
  const memory = use.user === undefined ? unexplainedMemory(use, use.processes, limits) : 0;
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
  const { user, processes } = use;
  if (use.isHeld || user?.endedAtMs === undefined) return finding(false, 'ProcessLeft', 'no holder has ended');
  const others = processes.filter((process) => !isAllowed(process, limits));
  const left = others.filter(({ owner }) => owner === 'former');
  if (left.length > 0) return finding(true, 'ProcessLeft', `${endText(user)}, but it left ${listed(left.map(processText))}`);
  const memory = unexplainedMemory(use, processes, limits);
  if (memory === 'unknown') return [];
  if (memory > 0) {
    const message = `${endText(user)}, but ${memoryText(memory)} of memory that no process explains are left`;
    return finding(use.hasAllProcesses || 'unknown', 'MemoryLeft', message);
  }
  const isKnown = use.hasAllProcesses && others.every(({ owner }) => owner !== 'unknown');
  return finding(isKnown ? false : 'unknown', 'ProcessLeft', 'nothing is left');
}

function endText({ pods, endedAtMs = 0 }: DeviceUser): string {
  const names = listed(pods.map(({ namespace, pod }) => `${namespace}/${pod}`));
  return `the last holder, ${names}, was gone at ${new Date(endedAtMs).toISOString()}`;
}
