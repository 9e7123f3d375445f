import type { DeviceRead, DeviceReport, SideReport } from '../model/collection.ts';
import { type Device, deviceKey } from '../model/device.ts';
import type { DeviceUser } from '../model/device-use.ts';
import { hardwareKey, KnownHardware } from '../model/hardware.ts';
import type { FamilyState } from '../model/snapshot.ts';
import type { TimedCollection } from '../supervisor/family-runner.ts';

/** Latest reading of one family, whatever its age, and the state of its probe. */
export interface FamilyInput {
  readonly state: FamilyState;
  readonly latest?: TimedCollection | undefined;
  /** A later run failed: no device of the family was read after `latest`. */
  readonly isBlind?: boolean;
}

/** A report on a device, with the begin and end of the reading that gave it. */
export type Dated<T> = T & Omit<TimedCollection, 'collection'>;

/** Known state of one device. Plain data, replaced as a whole. */
export interface KnownDevice {
  readonly device: Device;
  /** Last report of the device itself; absent while this run of the agent has not read it. */
  readonly read?: Dated<DeviceRead>;
  /** Last report of other sources. */
  readonly outOfBand?: Dated<SideReport>;
  /** The latest reading of the family did not read this device. */
  readonly isUnread: boolean;
  /** Wall clock of the last read by an earlier run of the agent. */
  readonly readBeforeMs?: number;
  /** A read of it hung when an earlier run of the agent ended. */
  readonly wasHung?: true;
  /** Wall clock of the moment when the device went missing. */
  readonly missingSinceMs?: number;
  /** Monotonic clock of `missingSinceMs`, because the wall clock may be set. Before the start if an earlier run already missed it. */
  readonly missingFromMs?: number;
}

/** A device in the saved state of an earlier run of the agent. */
export interface RestoredDevice {
  readonly device: Device;
  readonly readAtMs: number;
  /** Present when the device was missing at the end of that run. */
  readonly missingSinceMs?: number;
  /** A read of the device hung at the end of that run. */
  readonly wasHung?: true;
  /** Its holders at the end of that run, or the last ones. */
  readonly user?: DeviceUser;
}

export interface Moment {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/** Devices that an earlier run knew, keyed by device key. Of two with one name, the last one counts. */
export function restored(devices: readonly RestoredDevice[]): ReadonlyMap<string, KnownDevice> {
  return new Map(
    devices.map(({ device, readAtMs, missingSinceMs, wasHung }): [string, KnownDevice] => [
      deviceKey(device),
      {
        device,
        isUnread: true,
        readBeforeMs: readAtMs,
        ...(wasHung === undefined ? {} : { wasHung }),
        ...(missingSinceMs === undefined ? {} : { missingSinceMs }),
      },
    ]),
  );
}

/**
 * All devices known after the latest readings: those reported now and those reported before. A device that a complete reading no longer
 * lists is missing and stays known for the retention time. A device that a reading could not reach stays unchanged. What is known belongs
 * to the hardware: it follows a device to another name, and it does not pass to other hardware under the same name.
 */
export function knownDevices(
  before: ReadonlyMap<string, KnownDevice>,
  families: readonly FamilyInput[],
  retentionMs: number,
  now: Moment,
): ReadonlyMap<string, KnownDevice> {
  const known = new Map<string, KnownDevice>();
  const completed = new Set<string>();
  const followed = new Set<KnownDevice>();
  // Places that have a new name, while the identity of the hardware cannot be read.
  const renamed = new Set<string>();
  const hardware = new KnownHardware([...before.values()]);
  for (const { state, latest, isBlind = false } of families) {
    if (latest === undefined) continue;
    const isComplete = latest.collection.listing === 'complete';
    if (isComplete) completed.add(state.family);
    const { reports } = latest.collection;
    const present = new Map(reports.map(({ device }) => [deviceKey(device), hardwareKey(device)]));
    const isPresent = new Set(present.values());
    for (const { device } of reports) {
      if (device.identity === null && device.pciAddress !== undefined && !before.has(deviceKey(device))) renamed.add(placeOf(device));
    }
    for (const report of reports) {
      const key = deviceKey(report.device);
      const atName = before.get(key);
      // Nobody can tell whose read it is, so it is a read of neither the known hardware nor of another one.
      const isUnidentified = report.device.identity === null && atName !== undefined && !isPresent.has(hardwareKey(atName.device));
      const own = isUnidentified && typeof atName.device.identity === 'string' ? { device: atName.device } : report;
      const prior = hardware.of(own.device, present);
      if (prior !== undefined) followed.add(prior);
      const device = reported(prior, own, latest, isBlind);
      // A report of other sources alone does not prove that the device is present.
      known.set(key, own.read === undefined ? unreported(device, isComplete && !isUnidentified, now) : device);
    }
  }
  for (const [key, device] of before) {
    if (known.has(key) || followed.has(device)) continue;
    const isGone = completed.has(device.device.family) || renamed.has(placeOf(device.device));
    const kept = unreported(device, isGone, now);
    if (kept.missingFromMs === undefined || now.monotonicMs - kept.missingFromMs < retentionMs) known.set(key, kept);
  }
  return known;
}

const placeOf = ({ family, pciAddress }: Device): string => `${family} ${pciAddress}`;

function reported(
  before: KnownDevice | undefined,
  { device, read, outOfBand }: DeviceReport,
  look: TimedCollection,
  isBlind: boolean,
): KnownDevice {
  const { collection: _, ...times } = look;
  const isMissing = read === undefined && before?.missingSinceMs !== undefined;
  const lastRead = read === undefined ? before?.read : { ...read, ...times };
  const lastOutOfBand = outOfBand === undefined ? before?.outOfBand : { ...outOfBand, ...times };
  return {
    device,
    ...(lastRead === undefined ? {} : { read: lastRead }),
    ...(lastOutOfBand === undefined ? {} : { outOfBand: lastOutOfBand }),
    isUnread: read === undefined || isBlind,
    ...(before?.readBeforeMs === undefined ? {} : { readBeforeMs: before.readBeforeMs }),
    ...(before?.wasHung === undefined ? {} : { wasHung: before.wasHung }),
    ...(isMissing ? { missingSinceMs: before.missingSinceMs, missingFromMs: before.missingFromMs } : {}),
  } as KnownDevice;
}

function unreported(device: KnownDevice, isMissing: boolean, { nowMs, monotonicMs }: Moment): KnownDevice {
  const missingSinceMs = device.missingSinceMs ?? (isMissing ? nowMs : undefined);
  if (missingSinceMs === undefined) return { ...device, isUnread: true };
  const missingFromMs = device.missingFromMs ?? monotonicMs - Math.max(0, nowMs - missingSinceMs);
  return { ...device, isUnread: true, missingSinceMs, missingFromMs };
}
