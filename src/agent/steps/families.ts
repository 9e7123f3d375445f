import type { NameConflicts } from '../../join/name-conflicts.ts';
import { disabledChecks, type HostNeed } from '../../model/declaration.ts';
import type { Device } from '../../model/device.ts';
import type { RecordsByKey } from '../../model/device-record.ts';
import type { ExpectedDevices } from '../../model/expected.ts';
import type { FamilyState } from '../../model/snapshot.ts';
import type { AssembleSettings } from '../inputs.ts';
import { type FamilyInput, withExpected } from '../known-devices.ts';

interface FamilyFacts {
  readonly settings: Pick<AssembleSettings, 'unreturned' | 'needs'>;
  readonly conflicts: NameConflicts;
  readonly expected: readonly ExpectedDevices[];
}

/** The families with what the snapshot found out about them. */
export function familyStates(
  families: readonly FamilyInput[],
  known: RecordsByKey,
  { settings, conflicts, expected }: FamilyFacts,
): readonly FamilyState[] {
  const present = [...known.values()].flatMap(({ device, missingSinceMs }) => (missingSinceMs === undefined ? [device] : []));
  const unreturned = settings.unreturned?.() ?? [];
  return families.map(({ state }) => {
    const told = withExpected(withProblems(state, conflicts), expected);
    return withDisabled(withUnreturned(told, unreturned, present), settings.needs?.get(state.family), present);
  });
}

function withProblems(state: FamilyState, { problems }: NameConflicts): FamilyState {
  const own = problems.get(state.family) ?? [];
  return own.length === 0 ? state : { ...state, problems: [...state.problems, ...own] };
}

/** Other hardware in its place shows that a device was replaced. */
function withUnreturned(state: FamilyState, absent: readonly Device[], present: readonly Device[]): FamilyState {
  const unreturned = absent
    .filter((device) => device.family === state.family && !present.some((other) => isOtherInPlace(other, device)))
    .map(({ id }) => id);
  return unreturned.length === 0 ? state : { ...state, unreturned };
}

function isOtherInPlace(other: Device, device: Device): boolean {
  const isInPlace = other.family === device.family && other.parent === undefined && other.pciAddress === device.pciAddress;
  const areIdentified = typeof other.identity === 'string' && typeof device.identity === 'string';
  return isInPlace && other.pciAddress !== undefined && areIdentified && other.identity !== device.identity;
}

function withDisabled(state: FamilyState, needs: readonly HostNeed[] = [], present: readonly Device[]): FamilyState {
  const disabled = disabledChecks(needs, state.problems);
  const hasDevices = present.some(({ family }) => family === state.family);
  return disabled.length > 0 && hasDevices ? { ...state, disabledChecks: disabled } : state;
}
