import { minutes, seconds } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';

export const HELD_BY_STRANGER = 'HeldByStranger';
export const BUSY_WITHOUT_HOLDER = 'BusyWithoutHolder';
export const DIRTY_AFTER_USE = 'DirtyAfterUse';
export const IDLE_HELD = 'IdleHeld';
export const HELD_PORT_DOWN = 'HeldPortDown';
export const BUSY_WAITING = 'BusyWaiting';
export const STALLED = 'Stalled';
export const SAME_ID = 'SameIdInPods';

/** Times of the section `usage` that the conditions of use wait. */
export interface UseDurations {
  readonly 'idle-after': number;
  readonly 'busy-after': number;
  readonly 'dirty-after': number;
}

const DEFAULTS: UseDurations = { 'idle-after': minutes(30), 'busy-after': minutes(5), 'dirty-after': seconds(60) };

/** Conditions that the agent finds when it compares what a device does with who holds it. Every device can have those that its family allows. */
export function useConditions(durations: UseDurations = DEFAULTS): readonly ConditionSpec[] {
  return [
    {
      type: HELD_BY_STRANGER,
      class: 'self-clearing',
      severity: 'degraded',
      reasons: ['ProcessOfOtherPod', 'ProcessOutsidePods'],
      meaning:
        'A process uses the device, but its pod does not hold the device, or it runs outside of pods. A pod that uses the device by delegation is no stranger (`usage.delegated-holders`, `usage.delegated-ids`). Processes named in `usage.allowed-processes` are never strangers, in a pod or outside: a program that takes such a name is not found. A process whose cgroup cannot be read is unknown, and so is a process of a pod with an allocation that leads to no device. Unknown processes raise nothing. Only families whose devices serve their holders alone have this condition: GPUs, not network adapters.',
      remedy: 'inspect',
      source: 'The processes of the device compared with the answer of the kubelet. 60 s cover a pod between its stop and its removal.',
      forMs: seconds(60),
      use: true,
    },
    {
      type: BUSY_WITHOUT_HOLDER,
      class: 'self-clearing',
      severity: 'degraded',
      reasons: ['EnginesBusy', 'MemoryInUse'],
      meaning:
        'The device has no holder, and no process explains its work or its memory. Processes named in `usage.allowed-processes` explain what they use themselves.',
      remedy: 'inspect',
      source:
        'Engines above `usage.idle`, or memory above `usage.dirty-mib`, for `usage.busy-after`. Memory that a known holder left is DirtyAfterUse instead.',
      forMs: durations['busy-after'],
      use: true,
    },
    {
      type: DIRTY_AFTER_USE,
      class: 'self-clearing',
      severity: 'degraded',
      reasons: ['ProcessLeft', 'MemoryLeft'],
      meaning:
        'The last holder of the device ended, but one of its processes or its memory is still there. When another pod gets the device, a process that is left is a stranger.',
      remedy: 'inspect',
      source: 'A process of the last holder, or memory above `usage.dirty-mib`, for `usage.dirty-after` from the end of the holder.',
      forMs: durations['dirty-after'],
      use: true,
    },
    {
      type: IDLE_HELD,
      class: 'self-clearing',
      severity: 'info',
      reasons: ['Idle'],
      meaning: 'A pod holds the device and does nothing with it. A device of which one signal cannot be read is never called idle.',
      remedy: 'none',
      source: 'Every signal of the family at or below `usage.idle`, for `usage.idle-after`.',
      forMs: durations['idle-after'],
      use: true,
      ofHolder: true,
    },
    {
      type: HELD_PORT_DOWN,
      class: 'self-clearing',
      severity: 'degraded',
      reasons: ['NoPortUp'],
      meaning:
        'A pod holds the device, but no port of the device is up. Ports that were never up count too; without a holder they are no fault. The condition does not hold while a condition of the family reports the port.',
      remedy: 'check-cable',
      source: 'device_link_up is 0 for every port of the device, for 60 s.',
      forMs: seconds(60),
      use: true,
    },
    {
      type: SAME_ID,
      class: 'self-clearing',
      severity: 'info',
      reasons: ['TwoPods'],
      meaning:
        'The kubelet names one and the same id of a device plugin for two pods at once; the message names them. The id is of one container: the kubelet allocated it again while it was in use. Containers of one pod, claims, and replicas, which have ids of their own, are no such case.',
      remedy: 'inspect',
      source: 'PodResources `List` for 60 s, without pods that ended by the Pods API.',
      forMs: seconds(60),
      use: true,
      ofHolder: true,
    },
    {
      type: BUSY_WAITING,
      class: 'self-clearing',
      severity: 'info',
      reasons: ['NoProgress'],
      meaning:
        'The GPUs of a container are busy, but their engines do no work, and no bytes move over its links: it waits for something. A server without requests can look the same. docs/waiting.md has the limits.',
      remedy: 'none',
      source:
        'The section `stall`: for `stall.after`, all devices of the container together. A sign that was not read never speaks for waiting.',
      use: true,
      ofHolder: true,
    },
    {
      type: STALLED,
      class: 'self-clearing',
      severity: 'info',
      reasons: ['NoProgress'],
      meaning:
        'As BusyWaiting, in a container whose periodic steps were seen before: its job most likely hangs. The node cannot tell which rank of the job is the cause, and a long checkpoint of another node looks the same.',
      remedy: 'none',
      source: 'The section `stall`, and the period of bytes and power.',
      use: true,
      ofHolder: true,
    },
  ];
}

/** With the default times. */
export const USE_CONDITIONS = useConditions();
