import type { DeviceUse, UseLimits } from '../../model/device-use.ts';
import type { Finding } from '../../model/health.ts';
import { HELD_BY_STRANGER } from '../policy/use-conditions.ts';
import { isAllowed } from './explained.ts';
import { listed, processText } from './words.ts';

/**
 * Judges whether a process uses a device that it does not hold. The processes of a device with parts are those of its parts, so such a
 * device is never accused; it can only be found clean.
 */
export function strangerFindings(use: DeviceUse, limits: UseLimits): readonly Finding[] {
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
