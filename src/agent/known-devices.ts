import type { DeviceRead, DeviceReport, SideReport } from '../model/collection.ts';
import { type Device, deviceKey } from '../model/device.ts';
import type { FamilyState } from '../model/snapshot.ts';
import type { Look } from '../supervisor/family-runner.ts';

/** The last look at one family, however old, and how its probe is doing. */
export interface FamilyInput {
  readonly state: FamilyState;
  readonly latest?: Look | undefined;
  /** A later run came to nothing: no device of the family was read since. */
  readonly isBlind?: boolean;
}

/** What was told of a device, and when the look that told it began and ended. */
export type Dated<T> = T & Omit<Look, 'collection'>;

/** What is known of one device. Plain data, replaced as a whole. */
export interface KnownDevice {
  readonly device: Device;
  /** What the device told when it was last read; absent while this run of the agent has not read it. */
  readonly read?: Dated<DeviceRead>;
  /** What other sources told of it last. */
  readonly aside?: Dated<SideReport>;
  /** The latest look at the family did not read it. */
  readonly isUnread: boolean;
  /** Wall clock of the last read by an earlier run of the agent. */
  readonly readBeforeMs?: number;
  /** A read of it hung when an earlier run of the agent ended. */
  readonly wasHung?: true;
  /** Wall clock since when it is missing. */
  readonly missingSinceMs?: number;
  /** Monotonic clock of that moment, since the wall clock may be set. Before the start where an earlier run of the agent missed it. */
  readonly missingFromMs?: number;
}

/** A device as an earlier run of the agent left it. */
export interface RestoredDevice {
  readonly device: Device;
  readonly readAtMs: number;
  /** Present when it was missing at the end of that run. */
  readonly missingSinceMs?: number;
  /** A read of it hung at the end of that run. */
  readonly wasHung?: true;
}

export interface Moment {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/** Devices that an earlier run knew, by key. One that got another name is known by its latest. */
export function restored(devices: readonly RestoredDevice[]): ReadonlyMap<string, KnownDevice> {
  const isRenamed = (one: RestoredDevice): boolean => devices.some((other) => isLaterName(other, one));
  return new Map(
    devices
      .filter((one) => !isRenamed(one))
      .map(({ device, readAtMs, missingSinceMs, wasHung }): [string, KnownDevice] => [
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
 * All devices that are known after the latest looks: those that were told, and those that were told before. A device that a complete
 * look no longer has is missing, and is known for the retention time. One that a look could not reach stays as it is.
 */
export function knownDevices(
  before: ReadonlyMap<string, KnownDevice>,
  families: readonly FamilyInput[],
  retentionMs: number,
  now: Moment,
): ReadonlyMap<string, KnownDevice> {
  const known = new Map<string, KnownDevice>();
  const completed = new Set<string>();
  for (const { state, latest, isBlind = false } of families) {
    if (latest === undefined) continue;
    const isComplete = latest.collection.listing === 'complete';
    if (isComplete) completed.add(state.family);
    for (const report of latest.collection.reports) {
      const key = deviceKey(report.device);
      const device = told(before.get(key), report, latest, isBlind);
      // Who only hears of a device from others has not seen it.
      known.set(key, report.read === undefined ? untold(device, isComplete, now) : device);
    }
  }
  const came = new Set([...known].filter(([key]) => !before.has(key)).map(([, { device }]) => bodyOf(device)));
  for (const [key, device] of before) {
    // Under another name it is not missing: udev renames HCAs when their driver is loaded anew.
    if (known.has(key) || (device.device.uuid !== undefined && came.has(bodyOf(device.device)))) continue;
    const kept = untold(device, completed.has(device.device.family), now);
    if (kept.missingFromMs === undefined || now.monotonicMs - kept.missingFromMs < retentionMs) known.set(key, kept);
  }
  return known;
}

function told(before: KnownDevice | undefined, { device, read, aside }: DeviceReport, look: Look, isBlind: boolean): KnownDevice {
  const { collection: _, ...times } = look;
  const isMissing = read === undefined && before?.missingSinceMs !== undefined;
  const lastRead = read === undefined ? before?.read : { ...read, ...times };
  const lastAside = aside === undefined ? before?.aside : { ...aside, ...times };
  return {
    device,
    ...(lastRead === undefined ? {} : { read: lastRead }),
    ...(lastAside === undefined ? {} : { aside: lastAside }),
    isUnread: read === undefined || isBlind,
    ...(before?.readBeforeMs === undefined ? {} : { readBeforeMs: before.readBeforeMs }),
    ...(before?.wasHung === undefined ? {} : { wasHung: before.wasHung }),
    ...(isMissing ? { missingSinceMs: before.missingSinceMs, missingFromMs: before.missingFromMs } : {}),
  } as KnownDevice;
}

function untold(device: KnownDevice, isMissing: boolean, { nowMs, monotonicMs }: Moment): KnownDevice {
  const missingSinceMs = device.missingSinceMs ?? (isMissing ? nowMs : undefined);
  if (missingSinceMs === undefined) return { ...device, isUnread: true };
  const missingFromMs = device.missingFromMs ?? monotonicMs - Math.max(0, nowMs - missingSinceMs);
  return { ...device, isUnread: true, missingSinceMs, missingFromMs };
}

function isLaterName(a: RestoredDevice, b: RestoredDevice): boolean {
  return a.readAtMs > b.readAtMs && b.device.uuid !== undefined && bodyOf(a.device) === bodyOf(b.device);
}

/** What stays of a device when it gets another name. */
function bodyOf({ family, kind, uuid, pciAddress }: Device): string {
  return [family, kind, uuid, pciAddress].join('\u0003');
}
