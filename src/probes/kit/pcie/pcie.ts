import { basename, dirname } from 'node:path';
import type { Tree } from '../../../host/fs/tree.ts';
import { isPciAddress } from '../../../host/pci/pci.ts';
import {
  type AerCounters,
  attainableGeneration,
  attainableWidth,
  doesPciFunctionAnswer,
  type PcieLink,
  readAer,
  readPcieLink,
} from '../../../host/pci/pcie.ts';
import { defined } from '../../../model/defined.ts';
import { seconds } from '../../../model/duration.ts';
import type { MetricSpec, Reading } from '../../../model/metric.ts';
import { memoizedBy } from '../../../model/readings.ts';
import { measured, shared } from '../../../model/shared-metrics.ts';
import { asOf, IntervalCache, type Pace } from '../pace.ts';

/** Ids of a bridge: `0x1002`, `0x1478`. */
export interface BridgeIds {
  readonly vendor: string;
  readonly device: string;
}

/**
 * PCI address of the function whose link leads to the slot. Some graphics cards have a PCIe switch of their own: the link of the GPU ends
 * at that switch, and the link to the slot is at the upper port of the switch. `isOwn` tells the bridges on the card from other bridges.
 */
function slotFunctionOf(sys: Tree, address: string, isOwn: (ids: BridgeIds) => boolean): string {
  const real = sys.realpath(`bus/pci/devices/${address}`);
  let found = address;
  for (let at = real === undefined ? '' : dirname(real); isPciAddress(basename(at)); at = dirname(at)) {
    const id = (file: string): string => sys.text(`${at}/${file}`)?.toLowerCase() ?? '';
    if (!isOwn({ vendor: id('vendor'), device: id('device') })) break;
    found = basename(at);
  }
  return found;
}

/** PCIe metrics and readings that all families share. */

const PCI = '/sys/bus/pci/devices/<address>';

/** PCIe state of a function that has its own link. */
export interface PcieSample {
  readonly link: PcieLink;
  readonly aer: AerCounters;
  /** False for a card that is no longer on the bus; absent when unknown. */
  readonly answers?: boolean;
  /** Monotonic clock of the read, when an earlier collection made it. */
  readonly readMs?: number | undefined;
}

/** Interval of reads of the configuration space. Its values rarely change, so two reads a minute are enough. */
export const PCIE_EVERY_MS = seconds(30);

/** `slot`: function whose link leads to the slot. */
export function readPcie(sys: Tree, address: string, slot: string = address): PcieSample {
  const answers = doesPciFunctionAnswer(sys, address);
  return { link: readPcieLink(sys, slot), aer: readAer(sys, address, slot), ...defined({ answers }) };
}

/** Reads the PCIe state of one function at an interval. A function that does not answer is read each time. */
export class PcieReader {
  readonly #sys: Tree;
  readonly #address: string;
  readonly #isOwnBridge: ((ids: BridgeIds) => boolean) | undefined;
  readonly #kept = new IntervalCache<PcieSample>();
  #slot: string | undefined;

  /** `isOwnBridge` tells the bridges on the card from other bridges; absent for cards without a bridge. */
  constructor(sys: Tree, address: string, isOwnBridge?: (ids: BridgeIds) => boolean) {
    this.#sys = sys;
    this.#address = address;
    this.#isOwnBridge = isOwnBridge;
  }

  read(pace: Pace): PcieSample {
    const read = (): PcieSample => readPcie(this.#sys, this.#address, this.#slotFunction());
    const date = (sample: PcieSample, readMs: number): PcieSample => ({ ...sample, readMs });
    return this.#kept.datedOf(pace, PCIE_EVERY_MS, read, date, ({ answers }) => answers !== false);
  }

  #slotFunction(): string | undefined {
    if (this.#isOwnBridge !== undefined) this.#slot ??= slotFunctionOf(this.#sys, this.#address, this.#isOwnBridge);
    return this.#slot;
  }
}

/** A sample without a link, for cards whose driver reports the link. */
export type PcieErrors = Omit<PcieSample, 'link'> & Partial<Pick<PcieSample, 'link'>>;

export const pcieLinkMetrics = {
  width: measured(shared.pcieWidth, `${PCI}/current_link_width, not of virtual functions`),
  widthMax: measured(shared.pcieWidthMax, `${PCI}/max_link_width of device and upstream port, the smaller`),
  generation: measured(shared.pcieGeneration, `${PCI}/current_link_speed, not of virtual functions`),
  generationMax: measured(shared.pcieGenerationMax, `${PCI}/max_link_speed of device and upstream port, the smaller`),
} as const satisfies Readonly<Record<string, MetricSpec>>;

export const pcieErrorMetric: MetricSpec = measured(
  shared.pcieErrors,
  `${PCI}/aer_dev_correctable, aer_dev_nonfatal, aer_dev_fatal: one line per kind; RootPort: aer_rootport_total_err_fatal of the root port directly above`,
);

/** All metrics of a device whose link the kernel reports. */
export const pcieMetrics: readonly MetricSpec[] = [...Object.values(pcieLinkMetrics), pcieErrorMetric];

function pcieLinkReadings({ link, readMs }: PcieSample): readonly Reading[] {
  const levels: readonly (readonly [MetricSpec, number | undefined])[] = [
    [pcieLinkMetrics.width, link.width],
    [pcieLinkMetrics.widthMax, attainableWidth(link)],
    [pcieLinkMetrics.generation, link.generation],
    [pcieLinkMetrics.generationMax, attainableGeneration(link)],
  ];
  const readings = levels.flatMap(([{ name }, value]) => (value === undefined ? [] : [{ metric: name, value }]));
  return asOf<Reading>(readings, readMs);
}

export function pcieErrorReadings({ aer, readMs }: PcieErrors): readonly Reading[] {
  const { errors, rootPort } = aer;
  const above: AerCounters['errors'] = rootPort === undefined ? [] : [{ severity: 'fatal', kind: 'RootPort', count: rootPort.fatal }];
  const readings = [...errors, ...above].map(({ severity, kind, count }) => ({
    metric: pcieErrorMetric.name,
    labels: { severity, kind },
    value: count <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(count) : count,
  }));
  return asOf<Reading>(readings, readMs);
}

/** Returns all readings of a device whose link the kernel reports; the same objects for the same sample. */
export const pcieReadings = memoizedBy((sample: PcieSample): readonly Reading[] => [
  ...pcieLinkReadings(sample),
  ...pcieErrorReadings(sample),
]);
