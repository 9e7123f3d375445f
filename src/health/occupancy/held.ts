import type { DeviceUse } from '../../model/device-use.ts';
import type { Finding } from '../../model/health.ts';
import { HELD_PORT_DOWN, IDLE_HELD } from '../policy/use-conditions.ts';
import { listed } from './words.ts';

/** Judges a device that a pod holds: whether the pod uses it, and whether it can. */
export function heldFindings(use: DeviceUse): readonly Finding[] {
  return [...idle(use), ...ports(use)];
}

function idle({ activity, holders }: DeviceUse): readonly Finding[] {
  if (activity === undefined) return [];
  const isIdle = holders.length === 0 ? false : activity.isIdle;
  if (isIdle === 'unknown') return [];
  return [
    { type: IDLE_HELD, status: isIdle, reason: 'Idle', message: isIdle ? `${heldBy(holders)} and does nothing` : 'it works or is free' },
  ];
}

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
