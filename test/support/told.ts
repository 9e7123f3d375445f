import type { DeviceProcess, DeviceReport } from '../../src/model/collection.ts';
import type { Device } from '../../src/model/device.ts';
import type { Finding } from '../../src/model/health.ts';
import type { Reading } from '../../src/model/metric.ts';

/** All that a look told of one device, by itself or by others, for tests that do not care who told it. */
export interface Told {
  readonly device: Device;
  readonly readings: readonly Reading[];
  readonly findings: readonly Finding[];
  readonly processes?: readonly DeviceProcess[];
}

export function toldOf({ device, read, outOfBand }: DeviceReport): Told {
  return {
    device,
    readings: [...(read?.readings ?? []), ...(outOfBand?.readings ?? [])],
    findings: [...(read?.findings ?? []), ...(outOfBand?.findings ?? [])],
    ...(read?.processes === undefined ? {} : { processes: read.processes }),
  };
}
