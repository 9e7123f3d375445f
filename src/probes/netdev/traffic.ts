import { countOf } from '../kit/count.ts';

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

/** A counter of the kernel as decimal text; undefined for other text, for all ones and for a number of more than 64 bits. */
export const parseCount = (text: string | undefined): bigint | undefined => countOf(text?.trim() ?? '');
