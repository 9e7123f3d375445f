import type { ServerWritableStream } from '@grpc/grpc-js';
import type { Device, Empty, ListAndWatchResponse } from '../../generated/deviceplugin/v1beta1/api.ts';
import { isSameList, kubeletDevices } from './inventory.ts';
import type { ResourceOffers } from './resource-offers.ts';

export type ListCall = ServerWritableStream<Empty, ListAndWatchResponse>;

/**
 * One open `ListAndWatch` stream. It sends the complete list immediately, and again when the list differs from the last one sent. A slow
 * kubelet gets the newest list at its next read and skips those in between.
 */
export class ListStream {
  readonly #call: ListCall;
  readonly #offers: ResourceOffers;
  readonly #onSending: (devices: readonly Device[]) => () => void;
  readonly #unsubscribe: () => void;
  readonly #onEnd: (stream: ListStream) => void;
  #sent: readonly Device[] | undefined;
  #isBlocked = false;
  #isOver = false;

  /** Calls `onSending` with each list, and calls the function that it returns after the list was written. */
  constructor(
    call: ListCall,
    offers: ResourceOffers,
    onSending: (devices: readonly Device[]) => () => void,
    onEnd: (stream: ListStream) => void,
  ) {
    this.#call = call;
    this.#offers = offers;
    this.#onSending = onSending;
    this.#onEnd = onEnd;
    this.#unsubscribe = offers.onChange(() => this.#send());
    for (const event of ['cancelled', 'close', 'error', 'finish']) call.on(event, () => this.drop());
    this.#send();
  }

  /** Ends the stream from the server side in the regular way. */
  end(): void {
    if (!this.#isOver) this.#call.end();
  }

  /** Marks the stream as ended, even when the gRPC library has not reported the end yet. */
  drop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#unsubscribe();
    this.#onEnd(this);
  }

  #send(): void {
    if (this.#isOver || this.#isBlocked) return;
    const devices = kubeletDevices(this.#offers.current());
    if (this.#sent !== undefined && isSameList(this.#sent, devices)) return;
    this.#sent = devices;
    this.#isBlocked = true;
    const written = this.#onSending(devices);
    // The stream would buffer sixteen lists before it signals back-pressure, so this waits for each write.
    this.#call.write({ devices }, (error?: Error | null) => {
      this.#isBlocked = false;
      if (error) return;
      written();
      this.#send();
    });
  }
}
