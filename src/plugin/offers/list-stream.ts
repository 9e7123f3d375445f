import type { ServerWritableStream } from '@grpc/grpc-js';
import type { Device, Empty, ListAndWatchResponse } from '../../generated/deviceplugin/v1beta1/api.ts';
import { isSameList, kubeletDevices } from './inventory.ts';
import type { ResourceOffers } from './resource-offers.ts';

export type ListCall = ServerWritableStream<Empty, ListAndWatchResponse>;

/**
 * One open `ListAndWatch`: sends the whole list at once and whenever it differs from what this stream sent last. A kubelet that reads
 * slowly gets the newest list when it reads on, not every one in between.
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

  /** `onSending` is told of each list; what it returns is called when the list was taken up. */
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

  /** Ends it from this side, in order. */
  end(): void {
    if (!this.#isOver) this.#call.end();
  }

  /** It is over, whether or not the library has noticed. */
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
    const taken = this.#onSending(devices);
    // The stream itself would take up sixteen lists before it said that nobody reads.
    this.#call.write({ devices }, (error?: Error | null) => {
      this.#isBlocked = false;
      if (error) return;
      taken();
      this.#send();
    });
  }
}
