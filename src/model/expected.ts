import type { Device } from './device.ts';

/** How many devices of one family the configuration expects on this node, and how many there are. */
export interface ExpectedDevices {
  readonly family: string;
  readonly expected: number;
  /** Absent while the family was never read completely, so that nothing is known. */
  readonly present?: number;
}

/**
 * Whether a device counts: parts of devices depend on how the node is set up, not on its hardware. `partKinds`: kinds of the family that are
 * always parts, also where their parent is not visible.
 */
export function countsAsDevice(
  { parent, kind, isInternal, unserved }: Pick<Device, 'parent' | 'kind' | 'isInternal' | 'unserved'>,
  partKinds: readonly string[] = [],
): boolean {
  return parent === undefined && isInternal !== true && unserved !== 'not-in-use' && !partKinds.includes(kind);
}

export const areTooFew = ({ expected, present }: ExpectedDevices): boolean => present !== undefined && present < expected;

/** The same text for the same numbers. */
export function expectedText({ family, expected, present }: ExpectedDevices): string {
  if (present === undefined) return `${expected} ${family} devices are expected, and it is not known how many are present`;
  return `${present} of ${expected} expected ${family} devices ${present === 1 ? 'is' : 'are'} present`;
}
