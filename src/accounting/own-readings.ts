import type { Reading } from '../model/metric.ts';
import type { ContainerReadings } from '../model/snapshot.ts';

const NONE: readonly Reading[] = [];

/** Readings of containers, found by container and device. The index is made at the first question. */
export class OwnReadings {
  readonly #all: readonly ContainerReadings[];
  #index: ReadonlyMap<string, readonly Reading[]> | undefined;

  constructor(all: readonly ContainerReadings[]) {
    this.#all = all;
  }

  /** `holder`: namespace, pod and container as one text. `deviceId`: the device's name within its family. */
  of(holder: string, deviceId: string): readonly Reading[] {
    this.#index ??= new Map(
      this.#all.map(({ namespace, pod, container, device, readings }) => [`${namespace}/${pod}/${container} ${device}`, readings]),
    );
    return this.#index.get(`${holder} ${deviceId}`) ?? NONE;
  }
}
