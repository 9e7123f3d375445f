import type { LedgerEntry } from './ledger.ts';

/** Why use was not observed: no reading ever told what the device did, other containers hold it too, or reads are missing in between. */
export const UNOBSERVED_REASONS = ['never-read', 'shared', 'gaps'] as const;
export type UnobservedReason = (typeof UNOBSERVED_REASONS)[number];

export const UNOBSERVED_TEXTS: Readonly<Record<UnobservedReason, string>> = {
  'never-read': 'no reading tells what the device does',
  shared: 'other containers hold the device too, and no reading tells whose work it is',
  gaps: 'reads or answers of the kubelet are missing in between, and after the last one',
};

/** The likeliest reason for the unobserved time of one account. A container that was alone and never observed has a device without signals. */
export function unobservedReason({
  busySeconds,
  idleSeconds,
  shareSeconds,
  allocatedSeconds,
  delegatedSeconds = 0,
}: Pick<LedgerEntry, 'busySeconds' | 'idleSeconds' | 'shareSeconds' | 'allocatedSeconds' | 'delegatedSeconds'>): UnobservedReason {
  // Rounding of the ledger is far below a hundredth.
  if (shareSeconds < (allocatedSeconds - delegatedSeconds) * 0.99) return 'shared';
  return idleSeconds === 0 && Object.keys(busySeconds).length === 0 ? 'never-read' : 'gaps';
}
