import type { Device } from '../model/device.ts';

const LONGEST_ID = 20;

/** Short name of a device for people. An id that only a program can tell apart gives way to the index of the vendor's tools. */
export function nameOf({ id, kind, index, uuid }: Pick<Device, 'id' | 'kind' | 'index' | 'uuid'>): string {
  if (id.length <= LONGEST_ID || (id !== uuid && index === undefined)) return id;
  return index === undefined ? `${id.slice(0, 12)}…` : `${kind.toUpperCase()} ${index}`;
}
