import { BinaryReader } from '@bufbuild/protobuf/wire';

/** A larger answer is decoded each time, so that no copy of it is kept. */
const MOST_KEPT_BYTES = 1_048_576;

interface Entry<Part> {
  readonly part: Part;
  count: number;
}

/**
 * Reads answers by the entries of the message, for example its pods. The same entries in any order are the same answer, and the same object: the
 * order of the kubelet is random. Only an entry whose bytes the answer before lacks is decoded. Throws when the bytes are not a valid message.
 *
 * `decode` reads a message of one entry, and `join` makes the answer of all.
 */
export function byEntry<Part, Answer>(
  decode: (bytes: Uint8Array) => Part,
  join: (parts: readonly Part[]) => Answer,
): (bytes: Buffer) => Answer {
  let latest: { readonly entries: ReadonlyMap<string, Entry<Part>>; readonly answer: Answer } | undefined;
  return (bytes) => {
    const entries = new Map<string, Entry<Part>>();
    const parts: Part[] = [];
    const reader = new BinaryReader(bytes);
    while (reader.pos < reader.len) {
      const start = reader.pos;
      const [number, wireType] = reader.tag();
      reader.skip(wireType, number);
      const key = bytes.toString('latin1', start, reader.pos);
      const entry = entries.get(key) ?? { part: latest?.entries.get(key)?.part ?? decode(bytes.subarray(start, reader.pos)), count: 0 };
      entry.count += 1;
      entries.set(key, entry);
      parts.push(entry.part);
    }
    if (latest !== undefined && areSameEntries(entries, latest.entries)) return latest.answer;
    const answer = join(parts);
    latest = bytes.length > MOST_KEPT_BYTES ? undefined : { entries, answer };
    return answer;
  };
}

function areSameEntries(a: ReadonlyMap<string, Entry<unknown>>, b: ReadonlyMap<string, Entry<unknown>>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, { count }] of a) if (b.get(key)?.count !== count) return false;
  return true;
}
