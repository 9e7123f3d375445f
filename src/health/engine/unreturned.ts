import { type Device, deviceKey } from '../../model/device.ts';
import type { DeviceMemory, HealthMemory, UnreturnedDevice } from './memory.ts';

type Unreturned = NonNullable<HealthMemory['unreturned']>;

/** Hardware that is remembered as out of service. */
const MOST_UNRETURNED = 256;

/** What the next boot needs of the memory. */
export function unreturnedAtBoot({ devices, unreturned = {} }: HealthMemory): Unreturned {
  return withUnreturned(unreturned, Object.entries(devices));
}

/** Adds those of the devices that were out of service, and keeps the hardware that was listed last. */
export function withUnreturned(unreturned: Unreturned, devices: readonly (readonly [string, DeviceMemory])[]): Unreturned {
  const out = devices.filter(([, memory]) => isOutOfService(memory));
  const added = out.map(([key, { device, listedAtMs }]) => [key, { device, listedAtMs }] as const);
  const all = Object.entries({ ...unreturned, ...Object.fromEntries(added) });
  return Object.fromEntries(all.sort(([, a], [, b]) => b.listedAtMs - a.listedAtMs).slice(0, MOST_UNRETURNED));
}

export function without(unreturned: Unreturned, isGone: (one: UnreturnedDevice) => boolean): Unreturned {
  return Object.fromEntries(Object.entries(unreturned).filter(([, one]) => !isGone(one)));
}

/**
 * Whether time alone must not make a device look well. A part depends on how its device is set up, and hardware whose name other hardware
 * has was replaced.
 */
const isOutOfService = ({ verdict, device, isDisplaced }: DeviceMemory): boolean =>
  verdict.state === 'unhealthy' && device.parent === undefined && isDisplaced !== true;

export const isCalled =
  (key: string) =>
  ({ device }: Pick<UnreturnedDevice, 'device'>): boolean =>
    deviceKey(device) === key;

export const devicesOf = (unreturned: Unreturned): readonly Device[] => Object.values(unreturned).map(({ device }) => device);
