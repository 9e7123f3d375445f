import type { Device } from '../model/device.ts';
import type { TrafficSum } from '../model/device-activity.ts';
import type { Identified } from '../model/hardware.ts';
import type { DeviceUsage } from '../model/usage.ts';
import type { Changing } from './container-account.ts';

/** Facts that the last line of an account in the ledger needs, because the device is gone then. `parent`: key of the device that contains it. */
export type DeviceFacts = Pick<DeviceUsage, 'model' | 'parent'>;

/** Account of one device. It is changed in place at each snapshot. */
export interface DeviceAccount {
  /** How it spent its time so far. */
  readonly usage: Changing<DeviceUsage>;
  /** Distinguishes the device from another one of the same name. */
  identity: Pick<Device, 'identity' | 'pciAddress' | 'uuid'>;
  facts: DeviceFacts;
  /** Pod and UID of the holder whose account ended last: the kubelet's checkpoint names it until the next pod gets the device. */
  former?: { readonly uid: string; readonly pod: string };
  /** The last verdict was unhealthy. */
  isUnhealthy: boolean;
  /** Time for which an earlier run's device has not been seen. Undefined once this run knows the device. */
  awaitedMs: number | undefined;
  /** Monotonic clock at which the last read began. */
  readFromMs: number | undefined;
  trafficSum: TrafficSum | undefined;
  /** Energy counter at its last read. */
  joules: number | undefined;
  /** Monotonic clock of that read. */
  joulesAtMs: number | undefined;
  /** Reads of the device since that read, or since the last read of its power where no counter was seen. */
  energyLooks: number;
  /** Power at its last read; undefined where that read had none, and where the driver counts energy. */
  power: { readonly watts: number; readonly atMs: number } | undefined;
}

export function openDeviceAccount(key: string, device: Device, nowMs: number): DeviceAccount {
  return {
    usage: { device: key, sinceMs: nowMs, allocatedSeconds: 0, unallocatedSeconds: 0, unhealthySeconds: 0, unobservedSeconds: 0 },
    identity: identityOf(device),
    facts: factsOf(device),
    ...NOT_READ,
    awaitedMs: undefined,
  };
}

/** Facts that come only from the reads and verdicts of this run. */
export const NOT_READ = {
  ...{ isUnhealthy: false, readFromMs: undefined, trafficSum: undefined, joules: undefined, joulesAtMs: undefined, energyLooks: 0 },
  power: undefined,
};

export function identityOf({ identity, pciAddress, uuid }: DeviceAccount['identity']): DeviceAccount['identity'] {
  return {
    ...(typeof identity === 'string' ? { identity } : {}),
    ...(pciAddress === undefined ? {} : { pciAddress }),
    ...(uuid === undefined ? {} : { uuid }),
  };
}

export function factsOf({ family, model, parent }: Device): DeviceFacts {
  return { ...(model === undefined ? {} : { model }), ...(parent === undefined ? {} : { parent: `${family}/${parent}` }) };
}

/** The device of an account, as far as it identifies the hardware. */
export function deviceOf({ usage: { device }, identity }: DeviceAccount): Identified {
  const at = device.indexOf('/');
  return { family: device.slice(0, at), id: device.slice(at + 1), ...identity };
}
