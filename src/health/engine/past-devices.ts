import { type Device, deviceKey } from '../../model/device.ts';
import type { HardwareKeys } from '../../model/hardware.ts';
import { isEmpty } from './conditions.ts';
import type { DeviceMemory, HealthMemory, IncidentTally, PastDevice, ProbationMemory } from './memory.ts';
import { begunProbation } from './probation.ts';

type Past = Readonly<Record<string, PastDevice>>;

/** Hardware that is not listed and keeps its counts. */
const MOST_PAST = 256;

/** What the next boot needs of the memory. */
export function pastOf({ devices, past = {} }: HealthMemory): Past {
  return withPast(past, Object.entries(devices));
}

/** Adds devices that are no longer remembered, and keeps the hardware that was listed last. */
export function withPast(past: Past, devices: readonly (readonly [string, DeviceMemory])[]): Past {
  const left = devices
    .map(([key, memory]) => [key, pastDevice(memory)] as const)
    .filter(([, { incidents, probation, isOut }]) => incidents ?? probation ?? isOut);
  const all = Object.entries({ ...past, ...Object.fromEntries(left) });
  return Object.fromEntries(all.sort(([, a], [, b]) => b.listedAtMs - a.listedAtMs).slice(0, MOST_PAST));
}

/** What was known of the hardware of a device before it was listed. */
export function pastOfDevice(past: Past, keys: HardwareKeys, device: Device): PastDevice | undefined {
  return isEmpty(past) ? undefined : keys.recall((key) => past[key], device);
}

export const withoutPast = (past: Past, taken: ReadonlySet<PastDevice>): Past =>
  taken.size === 0 ? past : Object.fromEntries(Object.entries(past).filter(([, one]) => !taken.has(one)));

/** The counts of the same hardware from before and from since it was listed. */
export function joined(before: PastDevice['incidents'], since: PastDevice['incidents']): PastDevice['incidents'] {
  if (before === undefined || since === undefined) return before ?? since;
  const isSame = (a: IncidentTally, b: IncidentTally): boolean => a.state === b.state && a.condition === b.condition;
  const added = since.map((one) => ({ ...one, count: one.count + (before.find((other) => isSame(one, other))?.count ?? 0) }));
  return [...before.filter((one) => !since.some((other) => isSame(one, other))), ...added];
}

/**
 * Whether time alone must not make a device look well. A part depends on how its device is set up, and hardware whose name other hardware
 * has was replaced.
 */
const isOutOfService = ({ verdict, device, isDisplaced }: DeviceMemory): boolean =>
  verdict.state === 'unhealthy' && device.parent === undefined && isDisplaced !== true;

/** Hardware that was out of service when it was last listed, and that was not listed since. */
export const unreturnedOf = (past: Past): readonly Device[] => Object.values(past).flatMap(({ device, isOut }) => (isOut ? [device] : []));

/** A person said that a device does not return. */
export function withoutOut(past: Past, key: string): Past {
  const known = Object.entries(past).map(([at, one]): [string, PastDevice] => {
    const { isOut: _, ...left } = one;
    return [at, deviceKey(one.device) === key ? left : one];
  });
  return Object.fromEntries(known);
}

/** What stays of a device that is no longer listed; undefined when nothing must. Without an identity, its counts could pass to other hardware. */
export function forgottenDevice(memory: DeviceMemory): DeviceMemory | undefined {
  if (typeof memory.device.identity === 'string') return memory;
  if (!isOutOfService(memory)) return undefined;
  const { incidents: _, probation: __, ...left } = memory;
  return left;
}

/** A fault that counted is over for the next boot only because the machine booted. */
function pastDevice(memory: DeviceMemory): PastDevice {
  const { device, listedAtMs, verdict, incidents, probation } = memory;
  const failed = incidents?.findLast(({ state }) => state === 'unhealthy')?.condition;
  const next = verdict.state === 'unhealthy' ? begunProbation(failed, listedAtMs) : probation && withoutRead(probation);
  return {
    device,
    listedAtMs,
    // No condition goes on, so its time must not keep a later incident from being counted.
    ...(incidents === undefined ? {} : { incidents: incidents.map((tally) => ({ ...tally, lastMs: 0 })) }),
    ...(next === undefined ? {} : { probation: next }),
    ...(isOutOfService(memory) ? { isOut: true as const } : {}),
  };
}

const withoutRead = ({ readAtMs: _, ...probation }: ProbationMemory): ProbationMemory => probation;
