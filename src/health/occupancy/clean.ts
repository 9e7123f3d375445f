import type { DeviceUse, UseLimits } from '../../model/device-use.ts';
import { isAllowed, unexplainedMemory } from './explained.ts';
import { listed, memoryText, processText } from './words.ts';

/**
 * Returns why a container must not start on the device; undefined when the device is clean. What cannot be read is not clean. `use` is
 * absent when the device was not read. A process of a pod that holds the device is no dirt: the device is shared.
 */
export function whyDirty(use: DeviceUse | undefined, limits: UseLimits): string | undefined {
  if (use === undefined) return 'it could not be read, so its cleanliness cannot be verified';
  if (!use.isForHoldersOnly) return 'the processes of its family are not known, so its cleanliness cannot be verified';
  if (!use.hasAllProcesses) return 'its processes could not be read, so its cleanliness cannot be verified';
  const others = use.processes.filter((process) => !isAllowed(process, limits));
  const strangers = others.filter(({ owner }) => owner !== 'holder' && owner !== 'unknown');
  if (strangers.length > 0) return `it is used by ${listed(strangers.map(processText))}`;
  if (others.length > 0 && !use.areHoldersKnown) return 'the kubelet does not report whose processes use it';
  const unknown = others.filter(({ owner }) => owner === 'unknown');
  if (unknown.length > 0) return `it is used by ${listed(unknown.map(processText))}`;
  const memory = unexplainedMemory(use, use.processes, limits);
  if (memory === 'unknown') return 'its memory in use could not be read, so its cleanliness cannot be verified';
  return memory > 0 ? `no process explains ${memoryText(memory)} of its memory` : undefined;
}
