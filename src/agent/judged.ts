import type { Allocation } from '../model/allocation.ts';
import type { DeviceReport } from '../model/collection.ts';
import type { Verdict } from '../model/health.ts';
import { Readings } from '../model/readings.ts';
import type { DeviceState } from '../model/snapshot.ts';
import type { Remembered } from './seating.ts';

/** One device as the judge sees it. */
export interface Judged {
  readonly key: string;
  readonly report: DeviceReport;
  /** Wall clock of the read that the report comes from. */
  readonly readAtMs: number;
  /** The same moment by the monotonic clock; undefined when an earlier run of the agent read it. */
  readonly readMonotonicMs: number | undefined;
  readonly stale: boolean;
  readonly missingSinceMs?: number;
  /** Known from an earlier run of the agent and not read yet by this one, which began then: what it had is neither seen nor over. */
  readonly awaitedSinceMs?: number;
  readonly holders: readonly Allocation[];
}

/** Most devices are there and read, so the object has one shape for them. */
export function toJudged(
  key: string,
  { report, readAtMs, monotonicMs, missingSinceMs }: Remembered,
  stale: boolean,
  awaitedSinceMs: number | undefined,
  holders: Judged['holders'],
): Judged {
  const judged = { key, report, readAtMs, readMonotonicMs: monotonicMs, stale, holders };
  if (missingSinceMs === undefined && awaitedSinceMs === undefined) return judged;
  const marks = {
    ...(missingSinceMs === undefined ? {} : { missingSinceMs }),
    ...(awaitedSinceMs === undefined ? {} : { awaitedSinceMs }),
  };
  return { ...judged, ...marks };
}

const UNJUDGED: Verdict = { state: 'unknown', sinceMs: 0, conditions: [] };

/** As the snapshot has them, in the order of their keys. */
export function deviceStates(judged: readonly Judged[], verdicts: ReadonlyMap<string, Verdict>): readonly DeviceState[] {
  return inOrder(judged.map((device) => toState(device, verdicts.get(device.key) ?? UNJUDGED)));
}

function toState(device: Judged, verdict: Verdict): DeviceState {
  const current = !device.stale && device.missingSinceMs === undefined;
  const state = {
    key: device.key,
    device: device.report.device,
    readings: current ? device.report.readings : Readings.NONE,
    processes: current ? (device.report.processes ?? []) : [],
    verdict,
    holders: device.holders,
    readAtMs: device.readAtMs,
    stale: device.stale,
  };
  return device.missingSinceMs === undefined ? state : { ...state, missingSinceMs: device.missingSinceMs };
}

/** By their keys, as they mostly come already. */
function inOrder(devices: DeviceState[]): DeviceState[] {
  for (let at = 1; at < devices.length; at += 1)
    if ((devices[at - 1] as DeviceState).key > (devices[at] as DeviceState).key) return devices.sort(byKey);
  return devices;
}

const byKey = (a: DeviceState, b: DeviceState): number => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
