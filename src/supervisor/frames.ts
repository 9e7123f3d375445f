import { deserialize, serialize } from 'node:v8';

/** Before each message: its length. */
const HEADER = 4;

export function messageFrame(message: unknown): Buffer {
  const body = serialize(message);
  const header = Buffer.allocUnsafe(HEADER);
  header.writeUInt32LE(body.length, 0);
  return Buffer.concat([header, body]);
}

/** Takes the messages out of a stream of bytes. */
export class FrameReader<M> {
  #parts: Buffer[] = [];
  #length = 0;
  readonly #onMessage: (message: M) => void;

  constructor(onMessage: (message: M) => void) {
    this.#onMessage = onMessage;
  }

  /** Throws when a message cannot be understood. */
  push(chunk: Buffer): void {
    this.#parts.push(chunk);
    this.#length += chunk.length;
    while (this.#length >= HEADER) {
      if ((this.#parts[0] as Buffer).length < HEADER) this.#join();
      const end = HEADER + (this.#parts[0] as Buffer).readUInt32LE(0);
      if (this.#length < end) return;
      const bytes = this.#join();
      this.#parts = [bytes.subarray(end)];
      this.#length -= end;
      this.#onMessage(deserialize(bytes.subarray(HEADER, end)) as M);
    }
  }

  #join(): Buffer {
    const bytes = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
    this.#parts = [bytes];
    return bytes;
  }
}
