import { deserialize, serialize } from 'node:v8';
import type { Step } from '../host/fs/step-guard.ts';

/** Before each frame: its length, and what it is. */
const HEADER = 5;
const [REST, FILE, CALL, MESSAGE] = [0, 1, 2, 3];

export const messageFrame = (message: unknown): Buffer => frame(MESSAGE, serialize(message));
export const stepFrame = (step: Step | undefined): Buffer =>
  step === undefined ? frame(REST, Buffer.alloc(0)) : frame(step.kind === 'file' ? FILE : CALL, Buffer.from(step.path));

function frame(kind: number, body: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER + body.length);
  bytes.writeUInt32LE(body.length, 0);
  bytes[4] = kind;
  body.copy(bytes, HEADER);
  return bytes;
}

/** Takes the frames out of a stream of bytes. */
export class FrameReader<M> {
  #rest: Buffer = Buffer.alloc(0);
  readonly #onMessage: (message: M) => void;
  #step: { readonly kind: number; readonly path: Buffer } | undefined;
  /** Number of steps so far. */
  steps = 0;

  constructor(onMessage: (message: M) => void) {
    this.#onMessage = onMessage;
  }

  /** The latest step. Steps are many, so only the one that is asked for is decoded. */
  get step(): Step | undefined {
    if (this.#step === undefined || this.#step.kind === REST) return undefined;
    return { kind: this.#step.kind === FILE ? 'file' : 'call', path: this.#step.path.toString() };
  }

  /** Returns whether there was a message. Throws when a message cannot be understood. */
  push(chunk: Buffer): boolean {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let hasMessage = false;
    while (bytes.length >= HEADER && bytes.length >= HEADER + bytes.readUInt32LE(0)) {
      const end = HEADER + bytes.readUInt32LE(0);
      const [kind, body] = [bytes[4] as number, bytes.subarray(HEADER, end)];
      bytes = bytes.subarray(end);
      if (kind === MESSAGE) {
        hasMessage = true;
        this.#step = undefined;
        this.#onMessage(deserialize(body) as M);
      } else {
        this.steps += 1;
        this.#step = { kind, path: body };
      }
    }
    this.#rest = bytes;
    return hasMessage;
  }
}
