import type { Device } from '../model/device.ts';
import type { TrafficSum } from '../model/device-activity.ts';
import type { Identified } from '../model/hardware.ts';
import type { DeviceUsage } from '../model/usage.ts';

/** Facts that the last line of an account in the ledger needs, because the device is gone then. `parent`: key of the device that contains it. */
export type DeviceFacts = Pick<DeviceUsage, 'model' | 'parent'>;

/** Account of one device. It is changed in place at each snapshot. */
export interface DeviceAccount {
  /** Changes when the hardware gets another name. */
  key: string;
  /** The key at the begin of the account. */
  readonly beganAs: string;
  /** Distinguishes the device from another one of the same name. */
  identity: Pick<Device, 'identity' | 'pciAddress' | 'uuid'>;
  facts: DeviceFacts;
  /** Wall clock. */
  readonly startedAtMs: number;
  allocatedMs: number;
  unallocatedMs: number;
  unhealthyMs: number;
  unobservedMs: number;
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
  /** Reads of the device since that read. */
  energyLooks: number;
}

export function openDeviceAccount(key: string, device: Device, nowMs: number): DeviceAccount {
  return {
    key,
    beganAs: key,
    identity: identityOf(device),
    facts: factsOf(device),
    startedAtMs: nowMs,
    ...{ allocatedMs: 0, unallocatedMs: 0, unhealthyMs: 0, unobservedMs: 0 },
    ...{ isUnhealthy: false, awaitedMs: undefined, readFromMs: undefined, trafficSum: undefined, joules: undefined },
    ...{ joulesAtMs: undefined, energyLooks: 0 },
  };
}

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
export function deviceOf({ key, identity }: DeviceAccount): Identified {
  const at = key.indexOf('/');
  return { family: key.slice(0, at), id: key.slice(at + 1), ...identity };
}

export function deviceUsageOf(account: DeviceAccount): DeviceUsage {
  const { key, beganAs } = account;
  return {
    device: key,
    ...(beganAs === key ? {} : { beganAs }),
    sinceMs: account.startedAtMs,
    allocatedSeconds: account.allocatedMs / 1_000,
    unallocatedSeconds: account.unallocatedMs / 1_000,
    unhealthySeconds: account.unhealthyMs / 1_000,
    unobservedSeconds: account.unobservedMs / 1_000,
  };
}
