import type { ObservedCall } from '../../../model/observation.ts';

/** Calls of the library in the file of a replay. Bytes are in base64. */
export interface RecordedCall extends Pick<ObservedCall, 'symbol' | 'types' | 'values' | 'code'> {
  readonly memory: readonly { readonly at: number; readonly before: string; readonly after: string }[];
  /** Number of an event, which is taken once. Absent for a value, which can be read again. */
  readonly event?: number;
}

/** Function that takes an event from the library. Each event is taken once, so its answers are a queue. */
export const TAKES_EVENT = 'nvmlEventSetWait_v2';

/** Function and scalar arguments of a call. Pointers to memory have no part in it, because memory has other addresses in a replay. */
export const callKey = ({ symbol, types, values }: Pick<ObservedCall, 'symbol' | 'types' | 'values'>): string =>
  [symbol, types, ...values].join(' ');
