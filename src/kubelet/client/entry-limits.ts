import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/**
 * Limits for one answer. A limit in bytes does not bound the memory: an empty pod has two bytes on the wire, and hundreds as an object.
 * A node with 500 pods, and all CPUs of a large machine listed for each container, stays below half of each limit.
 */
export interface EntryLimits {
  /** Fields of all messages: names, pods, containers, topology. */
  readonly fields: number;
  /** Device ids and devices of claims. Each one that is allocated becomes two series. */
  readonly devices: number;
  /** Bytes of packed numbers, which are CPU ids. */
  readonly packedBytes: number;
}

export const ENTRY_LIMITS: EntryLimits = { fields: 100_000, devices: 20_000, packedBytes: 1_000_000 };

/** What the fields of a message contain, keyed by field number. An absent number is a text or a plain number. */
interface Shape {
  readonly [field: number]: Shape | 'packed' | 'device' | 'skipped';
  /** Only the fields that are named count. The decoder skips the others, so they take no memory. */
  readonly isPartial?: true;
}

// Field numbers of podresources/v1/api.proto.
const TOPOLOGY: Shape = { 1: {} };
const MEMORY: Shape = { 3: TOPOLOGY };
const DEVICES: Shape = { 2: 'device', 3: TOPOLOGY };
const CLAIM_RESOURCE: Shape = { 1: {}, 4: 'device' };
const CONTAINER: Shape = { 2: DEVICES, 3: 'packed', 4: MEMORY, 5: { 4: CLAIM_RESOURCE } };
export const LIST_SHAPE: Shape = { 1: { 3: CONTAINER, 4: 'packed', 5: MEMORY } };
export const ALLOCATABLE_SHAPE: Shape = { 1: DEVICES, 2: 'packed', 3: MEMORY };

// Field numbers of pods/v1alpha1/api.proto. Each container, limit and claim of the specification counts, and each container of the status.
const POD_CONTAINER: Shape = { isPartial: true, 8: { isPartial: true, 1: 'skipped' } };
const POD_SPEC: Shape = { isPartial: true, 2: POD_CONTAINER, 20: POD_CONTAINER, 39: 'skipped' };
const POD_STATUS: Shape = {};
export const LIST_PODS_SHAPE: Shape = { 1: { 2: POD_SPEC, 3: POD_STATUS } };
/** For an agent that reads labels, too: each label counts. */
export const LIST_LABELED_PODS_SHAPE: Shape = { 1: { 1: { 11: {} }, 2: POD_SPEC, 3: POD_STATUS } };

export interface LimitedAnswer {
  /** A valid message with the entries that fit. */
  readonly bytes: Uint8Array;
  /** Number of entries of the message itself (pods of a `List` answer) that did not fit. */
  readonly dropped: number;
}

/**
 * Counts the entries of an encoded answer before it is decoded, and leaves out each entry that does not fit. The later entries that fit are
 * kept, so that one oversized pod does not hide the others. Throws when the bytes are not a valid message.
 */
export function limitEntries(bytes: Uint8Array, shape: Shape, limits: EntryLimits = ENTRY_LIMITS): LimitedAnswer {
  const reader = new BinaryReader(bytes);
  const kept: Uint8Array[] = [];
  let dropped = 0;
  let left = limits;
  while (reader.pos < reader.len) {
    const start = reader.pos;
    if (left.fields <= 0) {
      // Nothing fits any more. The rest is only counted, because an answer can have millions of empty entries.
      const [number, wireType] = reader.tag();
      reader.skip(wireType, number);
      dropped += 1;
      continue;
    }
    const rest = { ...left };
    countField(reader, shape, rest);
    if (rest.fields < 0 || rest.devices < 0 || rest.packedBytes < 0) {
      dropped += 1;
    } else {
      left = rest;
      kept.push(bytes.subarray(start, reader.pos));
    }
  }
  return dropped === 0 ? { bytes, dropped } : { bytes: Buffer.concat(kept), dropped };
}

function countField(reader: BinaryReader, shape: Shape, left: { -readonly [name in keyof EntryLimits]: number }): void {
  const [number, wireType] = reader.tag();
  const content = shape[number];
  if (content !== undefined || shape.isPartial === undefined) left.fields -= 1;
  if (content === 'device') left.devices -= 1;
  if (wireType !== WireType.LengthDelimited || content === undefined || content === 'device' || content === 'skipped') {
    reader.skip(wireType, number);
    return;
  }
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new RangeError('a message ends too early');
  if (content === 'packed') {
    left.packedBytes -= length;
    reader.pos = end;
    return;
  }
  while (reader.pos < end) countField(reader, content, left);
  if (reader.pos !== end) throw new RangeError('a field exceeds its message');
}

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
