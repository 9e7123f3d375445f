import type { RememberedDevice } from '../health/engine/engine.ts';
import type { DeviceReport, Problem } from '../model/collection.ts';
import { defined } from '../model/defined.ts';
import { type Device, deviceKey } from '../model/device.ts';
import type { DeviceRecord, ReadTimes } from '../model/device-record.ts';
import { areTooFew, countsAsDevice, type ExpectedDevices, expectedText } from '../model/expected.ts';
import { HardwareIndex, hardwareKey } from '../model/hardware.ts';
import { type ReadingList, Readings } from '../model/readings.ts';
import type { FamilyState } from '../model/snapshot.ts';
import type { TimedCollection } from '../supervisor/family-runner.ts';

/** Latest reading of one family, whatever its age, and the state of its probe. */
export interface FamilyInput {
  readonly state: FamilyState;
  readonly latest?: TimedCollection | undefined;
  /** A later run failed: no device of the family was read after `latest`. */
  readonly isBlind?: boolean;
}

/** A device in the saved state of an earlier run of the agent. */
export interface RestoredDevice extends RememberedDevice {
  /** A read of the device hung at the end of that run. */
  readonly wasHung?: true;
}

export interface Moment {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/** Devices that an earlier run knew, keyed by device key. Of two with one name, the last one counts. */
export function restored(devices: readonly RestoredDevice[]): ReadonlyMap<string, DeviceRecord> {
  return new Map(
    devices.map(({ device, readAtMs = 0, missingSinceMs, wasHung }): [string, DeviceRecord] => {
      const key = deviceKey(device);
      return [key, { key, device, isUnread: true, readBeforeMs: readAtMs, ...defined({ wasHung, missingSinceMs }) }];
    }),
  );
}

/**
 * All devices known after the latest readings: those reported now and those reported before. A device that a complete reading no longer
 * lists is missing and stays known for the retention time. A device that a reading could not reach stays unchanged. What is known belongs
 * to the hardware: it follows a device to another name, and it does not pass to other hardware under the same name.
 */
export function knownDevices(
  before: ReadonlyMap<string, DeviceRecord>,
  families: readonly FamilyInput[],
  retentionMs: number,
  now: Moment,
): ReadonlyMap<string, DeviceRecord> {
  const known = new Map<string, DeviceRecord>();
  const completed = new Set<string>();
  const left = new Map<string, { readonly report: DeviceReport<ReadingList>; readonly times: ReadTimes }>();
  const followed = new Set<DeviceRecord>();
  // Places that have a new name, while the identity of the hardware cannot be read.
  const renamed = new Set<string>();
  const hardware = new HardwareIndex([...before.values()]);
  for (const { state, latest, isBlind = false } of families) {
    if (latest === undefined) continue;
    const isComplete = latest.collection.listing === 'complete';
    if (isComplete) completed.add(state.family);
    const { reports } = latest.collection;
    for (const report of latest.collection.left ?? []) left.set(deviceKey(report.device), { report, times: latest });
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
      // A complete reading lists the device, though it could not read it: nobody removed it. A partial one repeats what was known.
      const missing = own.read !== undefined || (isComplete && !isUnidentified) ? {} : missingAfter(prior, false, now);
      known.set(key, recordOf(key, own, prior, own.read === undefined || isBlind, missing, latest.again?.get(report.device.id) ?? latest));
    }
  }
  for (const [key, device] of before) {
    if (known.has(key) || followed.has(device)) continue;
    const isGone = completed.has(device.device.family) || renamed.has(placeOf(device.device));
    // Who never saw more than a name of it cannot say that something is gone.
    if (isGone && !wasSeen(device)) continue;
    const missing = missingAfter(device, isGone, now);
    const isKept = missing.missingFromMs === undefined || now.monotonicMs - missing.missingFromMs < retentionMs;
    const last = left.get(key);
    if (isKept) known.set(key, recordOf(key, { ...last?.report, device: device.device }, device, true, missing, last?.times));
  }
  return known;
}

const wasSeen = ({ read, readBeforeMs, missingSinceMs, device: { identity } }: DeviceRecord): boolean =>
  (read ?? readBeforeMs ?? missingSinceMs) !== undefined || typeof identity === 'string';

const placeOf = ({ family, pciAddress }: Device): string => `${family} ${pciAddress}`;

/** A new record: the reports of `times`, and of the sources without a report what was known before. */
function recordOf(
  key: string,
  { device, read, outOfBand, faults }: DeviceReport<ReadingList>,
  before: DeviceRecord | undefined,
  isUnread: boolean,
  missing: Missing,
  times?: ReadTimes,
): DeviceRecord {
  return {
    key,
    device,
    read: read === undefined ? before?.read : dated(read, times as ReadTimes),
    outOfBand: outOfBand === undefined ? before?.outOfBand : dated(outOfBand, times as ReadTimes),
    faults,
    isUnread,
    firstReadMs: before?.firstReadMs ?? (read === undefined ? undefined : times?.monotonicMs),
    readBeforeMs: before?.readBeforeMs,
    wasHung: before?.wasHung,
    ...missing,
  };
}

type Dated<T> = Omit<T, 'readings'> & { readonly readings: Readings } & ReadTimes;

/** The report with its times. */
const dated = <T extends { readonly readings: ReadingList }>(report: T, { startedMs, readAtMs, monotonicMs }: ReadTimes): Dated<T> => ({
  ...report,
  readings: Readings.of(report.readings),
  startedMs,
  readAtMs,
  monotonicMs,
});

type Missing = Pick<DeviceRecord, 'missingSinceMs' | 'missingFromMs'>;

/** Since when a device without a report of itself is missing. `isMissing`: the reading would have listed it. */
function missingAfter(before: DeviceRecord | undefined, isMissing: boolean, { nowMs, monotonicMs }: Moment): Missing {
  const missingSinceMs = before?.missingSinceMs ?? (isMissing ? nowMs : undefined);
  if (missingSinceMs === undefined) return {};
  return { missingSinceMs, missingFromMs: before?.missingFromMs ?? monotonicMs - Math.max(0, nowMs - missingSinceMs) };
}

/** Kinds of devices that are always parts of others, keyed by family. */
export type PartKinds = ReadonlyMap<string, readonly string[]>;

/**
 * Compares the number of present devices with the expected number. A reading that could not reach everything proves only that there are
 * enough devices, never that there are too few: the last count then stays.
 */
export class ExpectedTracker {
  #counts: ReadonlyMap<string, number> = new Map();

  /** `expected`: keyed by family. */
  look(
    expected: Readonly<Record<string, number>>,
    families: readonly FamilyInput[],
    known: Iterable<Pick<DeviceRecord, 'device' | 'missingSinceMs'>>,
    partKinds: PartKinds = new Map(),
  ): readonly ExpectedDevices[] {
    const present = new Map<string, number>();
    for (const { device, missingSinceMs } of known) {
      if (missingSinceMs !== undefined || !countsAsDevice(device, partKinds.get(device.family))) continue;
      present.set(device.family, (present.get(device.family) ?? 0) + 1);
    }
    const counts = new Map(this.#counts);
    const list = Object.entries(expected).map(([family, wanted]): ExpectedDevices => {
      const count = present.get(family) ?? 0;
      const input = families.find(({ state }) => state.family === family);
      if (input !== undefined && (isComplete(input) || (isRead(input) && count >= wanted))) counts.set(family, count);
      const last = counts.get(family);
      return last === undefined ? { family, expected: wanted } : { family, expected: wanted, present: last };
    });
    this.#counts = counts;
    return list;
  }
}

const isRead = ({ state, latest }: FamilyInput): boolean => state.succeeded !== undefined && latest !== undefined;

/** The last run reached everything, or there was nothing to run: the machine shows no trace of the family and it never did. */
function isComplete({ state, latest, isBlind = false }: FamilyInput): boolean {
  return state.succeeded === true && !isBlind && latest?.collection.listing !== 'partial';
}

/** The problem of a family with too few devices. */
export function withExpected(state: FamilyState, expected: readonly ExpectedDevices[]): FamilyState {
  const own = expected.find(({ family }) => family === state.family);
  if (own === undefined || !areTooFew(own)) return state;
  const problem: Problem = { code: 'expected-missing', message: expectedText(own) };
  return { ...state, problems: [...state.problems, problem] };
}
