import { promisify } from 'node:util';
import { constants, crc32, deflateRaw, deflateRawSync } from 'node:zlib';

const deflate = promisify(deflateRaw);

/** A third of the time of the usual level for 6 % more bytes. */
const LEVEL = 1;

/** An end has a few kilobytes: with room for no more, making its compressor costs half. */
const FOR_ENDS = { level: LEVEL, windowBits: 13, memLevel: 6, chunkSize: 4_096 };

/** Magic number, deflate, no flags, no time, fastest level, system not told (RFC 1952, 2.3). */
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]);

/** Beginning of a gzip stream that any end can be put to. */
export interface GzipStart {
  readonly bytes: Buffer;
  readonly crc: number;
  readonly length: number;
}

/** Compresses pages that come in pieces, of which those that were in a page before are the same buffers: they are compressed once. */
export class PageGzip {
  readonly #starts = new WeakMap<readonly Buffer[], Promise<GzipStart>>();
  readonly #blocks = new WeakMap<Buffer, Promise<Buffer>>();

  /** Ends on a byte's boundary, with no last block. The same for the same list. */
  start(pieces: readonly Buffer[]): Promise<GzipStart> {
    return onceFor(this.#starts, pieces, () => this.#startOf(pieces));
  }

  async #startOf(pieces: readonly Buffer[]): Promise<GzipStart> {
    // On threads of Node's pool: the loop goes on meanwhile. Each piece begins anew, so that it can follow any other.
    const deflated = (piece: Buffer): Promise<Buffer> => deflate(piece, { level: LEVEL, finishFlush: constants.Z_SYNC_FLUSH });
    const blocks = await Promise.all(pieces.map((piece) => onceFor(this.#blocks, piece, () => deflated(piece))));
    let [crc, length] = [0, 0];
    for (const piece of pieces) {
      if (piece.length > 0) crc = crc32(piece, crc);
      length += piece.length;
    }
    return { bytes: Buffer.concat([HEADER, ...blocks]), crc, length };
  }
}

function onceFor<K extends object, V>(made: WeakMap<K, Promise<V>>, key: K, make: () => Promise<V>): Promise<V> {
  const known = made.get(key);
  if (known !== undefined) return known;
  const making = make();
  made.set(key, making);
  // A failure is not kept.
  making.catch(() => made.delete(key));
  return making;
}

/** What is to be sent after `start`, for a stream of both texts that every reader takes for one. For small texts. */
export function endGzip(start: GzipStart, text: Buffer): Buffer {
  const trailer = Buffer.alloc(8);
  // zlib takes an empty text for the wish to begin anew.
  trailer.writeUInt32LE(text.length === 0 ? start.crc : crc32(text, start.crc), 0);
  trailer.writeUInt32LE((start.length + text.length) % 2 ** 32, 4);
  return Buffer.concat([deflateRawSync(text, FOR_ENDS), trailer]);
}
