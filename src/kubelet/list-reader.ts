import { ListPodResourcesResponse, PodResources } from '../generated/podresources/v1/api.ts';
import { type Attribution, attributionFrom, attributionOf, type PodPart, podPart } from './allocations.ts';
import { areSameBytes, type PodSlice, podSlices } from './pod-slices.ts';

/** A pod as it was told last. */
interface Known {
  readonly slice: PodSlice;
  readonly part: PodPart;
  /** How often the last answer had these very bytes. */
  count: number;
  /** How often the answer under way has them so far. */
  seen: number;
}

/**
 * Reads one `List` answer after the other. The kubelet gives its pods in another order each time, so an answer is compared with the last
 * one as a set of pods, byte by byte: what is known is not decoded, and an answer that says the same is the same object as before.
 */
export class ListReader {
  /** By the hash of their bytes. */
  #known = new Map<number, Known[]>();
  /** Pods of the last answer; -1 before the first. */
  #count = -1;
  /** How often it had each part. */
  #parts: ReadonlyMap<PodPart, number> = new Map();
  #latest: Attribution = { allocations: [], exclusive: [] };

  /** Throws what the decoder throws for bytes that are no such message. */
  read(bytes: Uint8Array): Attribution {
    const slices = podSlices(bytes);
    if (slices === undefined) return this.#whole(bytes);
    for (const list of this.#known.values()) for (const known of list) known.seen = 0;
    const found = slices.map((slice) => this.#find(slice));
    const isSame = slices.length === this.#count && found.every((known) => known !== undefined && known.seen === known.count);
    if (!isSame) this.#renew(bytes, slices, found);
    return this.#latest;
  }

  /** Forgets what it was told: the next answer is read as if it were the first. */
  #forget(): void {
    this.#known = new Map();
    this.#parts = new Map();
    this.#count = -1;
  }

  #whole(bytes: Uint8Array): Attribution {
    this.#forget();
    this.#latest = attributionFrom(ListPodResourcesResponse.decode(bytes));
    return this.#latest;
  }

  #find(slice: PodSlice): Known | undefined {
    const known = this.#known.get(slice.hash)?.find((candidate) => areSameBytes(candidate.slice, slice));
    if (known !== undefined) known.seen += 1;
    return known;
  }

  #renew(bytes: Uint8Array, slices: readonly PodSlice[], found: readonly (Known | undefined)[]): void {
    const before = new Map(Array.from(this.#parts.keys(), (part) => [part.pod, part]));
    const parts = found.map((known, at) => known?.part ?? partOf(bytes, slices[at] as PodSlice, before));
    const next = new Map<number, Known[]>();
    for (const [at, slice] of slices.entries()) remember(next, slice, parts[at] as PodPart);
    const counts = counted(parts);
    if (this.#count < 0 || !areSameCounts(counts, this.#parts)) this.#latest = attributionOf(parts);
    this.#known = next;
    this.#parts = counts;
    this.#count = slices.length;
  }
}

/** The part of one pod; that from before when it says the same in other bytes: the order of devices in a pod is random too. */
function partOf(bytes: Uint8Array, { start, end }: PodSlice, before: ReadonlyMap<string, PodPart>): PodPart {
  const part = podPart(PodResources.decode(bytes.subarray(start, end)));
  const known = before.get(part.pod);
  return known !== undefined && textOf(known) === textOf(part) ? known : part;
}

function textOf(part: PodPart): string {
  return JSON.stringify(part, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
}

function counted(parts: readonly PodPart[]): ReadonlyMap<PodPart, number> {
  const counts = new Map<PodPart, number>();
  for (const part of parts) counts.set(part, (counts.get(part) ?? 0) + 1);
  return counts;
}

function areSameCounts(a: ReadonlyMap<PodPart, number>, b: ReadonlyMap<PodPart, number>): boolean {
  if (a.size !== b.size) return false;
  for (const [part, count] of a) if (b.get(part) !== count) return false;
  return true;
}

/** With the bytes of the present answer, so that the last one can be let go. */
function remember(into: Map<number, Known[]>, slice: PodSlice, part: PodPart): void {
  const list = into.get(slice.hash);
  const known = list?.find((candidate) => areSameBytes(candidate.slice, slice));
  if (known !== undefined) known.count += 1;
  else if (list === undefined) into.set(slice.hash, [{ slice, part, count: 1, seen: 0 }]);
  else list.push({ slice, part, count: 1, seen: 0 });
}
