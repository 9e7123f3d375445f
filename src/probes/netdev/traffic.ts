/** Counters of one function. A counter that the source does not give is absent. Packets that were dropped are no fault. */
export interface Traffic {
  readonly receivedBytes?: bigint;
  readonly receivedPackets?: bigint;
  readonly receivedMulticast?: bigint;
  readonly receivedBroadcast?: bigint;
  readonly receivedDropped?: bigint;
  readonly transmittedBytes?: bigint;
  readonly transmittedPackets?: bigint;
  readonly transmittedDropped?: bigint;
  readonly receiveErrors?: bigint;
  readonly transmitErrors?: bigint;
}

export type TrafficCounter = keyof Traffic;

/** The kernel answers 0 for all counters when the driver has none, so only another value shows that the driver counts. */
export const hasCounted = (traffic: Traffic): boolean => Object.values(traffic).some((count) => count > 0n);

export const isEmpty = (traffic: Traffic): boolean => Object.keys(traffic).length === 0;

const ALL_ONES = 2n ** 64n - 1n;

/** All ones of 64 bits are what a read gives that the hardware did not answer. No counter gets there. */
export const isCount = (count: bigint): boolean => count < ALL_ONES;

/** A counter of the kernel as decimal text; undefined for other text, for all ones and for a number of more than 64 bits. */
export function parseCount(text: string | undefined): bigint | undefined {
  const trimmed = text?.trim() ?? '';
  if (!/^\d{1,20}$/.test(trimmed)) return undefined;
  const count = BigInt(trimmed);
  return isCount(count) ? count : undefined;
}
