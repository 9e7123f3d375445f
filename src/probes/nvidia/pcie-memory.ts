import type { Tree } from '../../host/tree.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { PCIE_EVERY_MS, pcieErrorFindings, pcieErrorReadings, readPcieErrors } from '../pcie.ts';

/** What the PCI function of a GPU told. */
export interface PcieTold {
  readonly readings: readonly Reading[];
  readonly findings: readonly Finding[];
}

/** What the PCI functions tell, asked for seldom. An answer that is the same is the same object. */
export class PcieMemory {
  readonly #sys: Tree;
  readonly #told = new Map<string, { readonly told: PcieTold; readonly atMs: number }>();

  constructor(sys: Tree) {
    this.#sys = sys;
  }

  /** Undefined where the function is not there. */
  read(address: string, nowMs: number): PcieTold | undefined {
    const known = this.#told.get(address);
    if (known !== undefined && nowMs - known.atMs < PCIE_EVERY_MS) return known.told;
    if (!this.#sys.exists(`bus/pci/devices/${address}`)) return undefined;
    const sample = readPcieErrors(this.#sys, address);
    const fresh = { readings: pcieErrorReadings(sample), findings: pcieErrorFindings(sample) };
    const told = known !== undefined && isSame(fresh, known.told) ? known.told : fresh;
    this.#told.set(address, { told, atMs: nowMs });
    return told;
  }
}

function isSame(a: PcieTold, b: PcieTold): boolean {
  return (
    a.readings.length === b.readings.length &&
    a.findings.length === b.findings.length &&
    a.readings.every((reading, at) => isSameReading(reading, b.readings[at] as Reading)) &&
    a.findings.every((finding, at) => finding.type === b.findings[at]?.type && finding.message === b.findings[at]?.message)
  );
}

const isSameReading = (a: Reading, b: Reading): boolean =>
  a.value === b.value && a.labels?.kind === b.labels?.kind && a.labels?.severity === b.labels?.severity;
