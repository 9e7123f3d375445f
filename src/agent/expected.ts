import type { Problem } from '../model/collection.ts';
import type { DeviceRecord } from '../model/device-record.ts';
import { areTooFew, countsAsDevice, type ExpectedDevices, expectedText } from '../model/expected.ts';
import type { FamilyState } from '../model/snapshot.ts';
import type { FamilyInput } from './known-devices.ts';

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
