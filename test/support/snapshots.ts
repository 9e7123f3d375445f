import type { Allocation } from '../../src/model/allocation.ts';
import type { Collection, DeviceRead, DeviceReport, SideReport } from '../../src/model/collection.ts';
import type { Device } from '../../src/model/device.ts';
import type { PodResources } from '../../src/model/pod-resources.ts';
import type { ReadingList } from '../../src/model/readings.ts';
import type { FamilyState } from '../../src/model/snapshot.ts';
import type { TimedCollection } from '../../src/supervisor/family-runner.ts';

/** Plain data with everything filled in, for tests that care about one field. */
export const device = (part: Partial<Device> & Pick<Device, 'id'>): Device => ({ family: 'toy', kind: 'toy', aliases: [], ...part });

/** Of a device that was read. */
export const report = ({ device, ...read }: Partial<DeviceRead> & Pick<DeviceReport, 'device'>): DeviceReport => ({
  device,
  read: { readings: [], findings: [], ...read },
});

export const outOfBand = (part: Partial<SideReport>): SideReport => ({ readings: [], findings: [], ...part });

/** What a look that reached everything told. */
export const listed = (reports: readonly DeviceReport[], part: Partial<Collection> = {}): Collection => ({
  reports,
  problems: [],
  listing: 'complete',
  ...part,
});

/** A look that ended at that time and took none. */
export const lookAt = (collection: Collection, readAtMs: number, monotonicMs = readAtMs, startedMs = monotonicMs): TimedCollection => ({
  collection,
  startedMs,
  readAtMs,
  monotonicMs,
});

export const allocation = (part: Partial<Allocation> & Pick<Allocation, 'deviceId'>): Allocation => ({
  namespace: 'ml',
  pod: 'train-0',
  container: 'main',
  resource: 'example.com/toy',
  numaNodes: [],
  ...part,
});

export const podResources = (allocations: readonly Allocation[], part: Partial<PodResources> = {}): PodResources => ({
  api: 'v1',
  allocations,
  held: new Set(),
  exclusive: [],
  podExclusive: [],
  answeredAtMs: 0,
  ...part,
});

export const familyState = (family: string): FamilyState => ({
  family,
  succeeded: true,
  readCompletely: true,
  problems: [],
  runs: 1,
  failures: 0,
  abandoned: 0,
  hung: false,
});

/** With readings one by one, as a family makes them. */
export const plain = ({ reports, ...rest }: Collection<ReadingList>): Collection => ({
  ...rest,
  reports: reports.map(({ read, outOfBand: side, ...report }) => ({
    ...report,
    ...(read && { read: { ...read, readings: [...read.readings] } }),
    ...(side && { outOfBand: { ...side, readings: [...side.readings] } }),
  })),
});
