import { RECORD_BYTES } from './source.ts';

/**
 * What the reader of the log writes to its socket. A client asks with one byte of any value. An answer is any number of records, and then one
 * frame of another type. A frame is its type, the length of its content in two bytes, and the content.
 */
const TYPES = {
  /** One record, as the kernel gave it. */
  record: 0x72,
  /** The answer ends, and there are more records. */
  more: 0x6d,
  /** The answer ends with the newest record. */
  end: 0x65,
  /** The log cannot be read; the content is the name of the errno. */
  failed: 0x78,
} as const;

type FrameType = keyof typeof TYPES;

export interface Frame {
  readonly type: FrameType;
  readonly content: Buffer;
}

const NAMES = new Map(Object.entries(TYPES).map(([name, byte]) => [byte as number, name as FrameType]));
const HEADER = 3;
export const FRAME_BYTES = HEADER + RECORD_BYTES;

/** Writes a frame into the bytes and returns where it ends. */
export function putFrame(bytes: Buffer, at: number, type: FrameType, content: Uint8Array = new Uint8Array()): number {
  bytes[at] = TYPES[type];
  bytes.writeUInt16BE(content.length, at + 1);
  bytes.set(content, at + HEADER);
  return at + HEADER + content.length;
}

/** The first frame of the bytes and its size; undefined when more bytes are needed, `wrong` when these are not of the reader. */
export function frameAt(bytes: Buffer): { readonly frame: Frame; readonly size: number } | 'wrong' | undefined {
  if (bytes.length < HEADER) return undefined;
  const type = NAMES.get(bytes[0] as number);
  const length = bytes.readUInt16BE(1);
  if (type === undefined || length > RECORD_BYTES) return 'wrong';
  const size = HEADER + length;
  return bytes.length < size ? undefined : { frame: { type, content: bytes.subarray(HEADER, size) }, size };
}
