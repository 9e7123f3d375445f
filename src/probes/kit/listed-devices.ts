import type { Collection } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';

/** A line about a device that left the list is read soon after. */
const LEFT_MS = 60_000;

/** The devices of a family, and those that left its list in the last minute. */
export class ListedDevices {
  all: readonly Device[];
  #left: readonly { readonly device: Device; readonly atMs: number }[] = [];

  constructor(known: readonly Device[]) {
    this.all = known;
  }

  get left(): readonly Device[] {
    return this.#left.map(({ device }) => device);
  }

  /** What a list that is not complete leaves out stays. `isRenamed`: a device is listed under another name now. */
  take({ reports, listing }: Collection, nowMs: number, isRenamed = (_: Device): boolean => false): void {
    const listed = new Set(reports.map(({ device }) => device.id));
    const others = this.all.filter((device) => !listed.has(device.id) && !isRenamed(device));
    const isComplete = listing === 'complete';
    this.all = [...reports.map(({ device }) => device), ...(isComplete ? [] : others)];
    const left = isComplete ? [...this.#left, ...others.map((device) => ({ device, atMs: nowMs }))] : this.#left;
    this.#left = left.filter(({ device, atMs }) => nowMs - atMs < LEFT_MS && !listed.has(device.id));
  }
}
