/** Tag of `pod_resources` in a `List` answer: field 1, with a length. */
const POD = 0x0a;
const HASH_FACTOR = 0x01000193;
const HASH_START = 0x811c9dc5;

/** The bytes of one pod's message in an answer. */
export interface PodSlice {
  readonly answer: DataView;
  readonly start: number;
  readonly end: number;
  readonly hash: number;
}

/** Where the pods of an answer lie; undefined when there is anything in it that is no pod, or it is cut off. */
export function podSlices(bytes: Uint8Array): PodSlice[] | undefined {
  const answer = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const slices: PodSlice[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (bytes[at++] !== POD) return undefined;
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      if (byte === undefined || shift > 28) return undefined;
      length += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    const end = at + length;
    if (end > bytes.length) return undefined;
    slices.push({ answer, start: at, end, hash: hashOf(answer, at, end) });
    at = end;
  }
  return slices;
}

/** Whether two slices are the same bytes. */
export function areSameBytes(a: PodSlice, b: PodSlice): boolean {
  const length = a.end - a.start;
  if (length !== b.end - b.start) return false;
  let at = 0;
  for (; at + 4 <= length; at += 4) if (a.answer.getInt32(a.start + at) !== b.answer.getInt32(b.start + at)) return false;
  for (; at < length; at += 1) if (a.answer.getUint8(a.start + at) !== b.answer.getUint8(b.start + at)) return false;
  return true;
}

/** Tells most different slices apart; equal ones are to be compared. */
function hashOf(answer: DataView, start: number, end: number): number {
  let hash = HASH_START ^ (end - start);
  let at = start;
  for (; at + 4 <= end; at += 4) hash = Math.imul(hash ^ answer.getInt32(at), HASH_FACTOR) ^ (hash >>> 15);
  for (; at < end; at += 1) hash = Math.imul(hash ^ answer.getUint8(at), HASH_FACTOR);
  return hash;
}
