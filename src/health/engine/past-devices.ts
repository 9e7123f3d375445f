import type { Device } from '../../model/device.ts';
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
    .filter(([, { incidents, probation }]) => incidents ?? probation);
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

/** A fault that counted is over for the next boot only because the machine booted. */
function pastDevice({ device, listedAtMs, verdict, incidents, probation }: DeviceMemory): PastDevice {
  const failed = incidents?.findLast(({ state }) => state === 'unhealthy')?.condition;
  const next = verdict.state === 'unhealthy' ? begunProbation(failed, listedAtMs) : probation && withoutRead(probation);
  return {
    device,
    listedAtMs,
    // No condition goes on, so its time must not keep a later incident from being counted.
    ...(incidents === undefined ? {} : { incidents: incidents.map((tally) => ({ ...tally, lastMs: 0 })) }),
    ...(next === undefined ? {} : { probation: next }),
  };
}

const withoutRead = ({ readAtMs: _, ...probation }: ProbationMemory): ProbationMemory => probation;
