import { BinaryReader } from '@bufbuild/protobuf/wire';

/** The entries of a message, each by its bytes, with their number. Throws when the bytes are not a valid message. */
export function entriesIn(bytes: Buffer): ReadonlyMap<string, number> {
  const reader = new BinaryReader(bytes);
  const entries = new Map<string, number>();
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [number, wireType] = reader.tag();
    reader.skip(wireType, number);
    const entry = bytes.toString('latin1', start, reader.pos);
    entries.set(entry, (entries.get(entry) ?? 0) + 1);
  }
  return entries;
}

export function areSameEntries(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): boolean {
  if (a.size !== b.size) return false;
  for (const [entry, count] of a) if (b.get(entry) !== count) return false;
  return true;
}
