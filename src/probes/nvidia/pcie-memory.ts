import type { Tree } from '../../host/fs/tree.ts';
import { doesPciFunctionAnswer, readAer } from '../../host/pci/pcie.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { PCIE_EVERY_MS, type PcieErrors, pcieErrorReadings } from '../pcie.ts';
import { pcieErrorFindings } from '../pcie-health.ts';

/** What the PCI function of a GPU told. */
export interface PcieTold {
  readonly readings: readonly Reading[];
  readonly findings: readonly Finding[];
}

/** What the PCI functions tell, asked for seldom. */
export class PcieMemory {
  readonly #sys: Tree;
  readonly #known = new Map<string, { readonly told: PcieTold; readonly atMs: number }>();

  constructor(sys: Tree) {
    this.#sys = sys;
  }

  /** Undefined where the function is not there. `nowMs`: monotonic. */
  read(address: string, nowMs: number): PcieTold | undefined {
    const known = this.#known.get(address);
    if (known !== undefined && nowMs - known.atMs < PCIE_EVERY_MS) return known.told;
    if (!this.#sys.exists(`bus/pci/devices/${address}`)) {
      this.#known.delete(address);
      return undefined;
    }
    const answers = doesPciFunctionAnswer(this.#sys, address);
    const errors: PcieErrors = { aer: readAer(this.#sys, address), ...(answers === undefined ? {} : { answers }) };
    const told = { readings: pcieErrorReadings(errors), findings: pcieErrorFindings(errors) };
    this.#known.set(address, { told, atMs: nowMs });
    return told;
  }
}
