import { type AerFiles, doesPciFunctionAnswer, parseAerFiles, readAerFiles } from '../../host/pcie.ts';
import type { Tree } from '../../host/tree.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { PCIE_EVERY_MS, pcieErrorFindings, pcieErrorReadings } from '../pcie.ts';

/** What the PCI function of a GPU told. */
export interface PcieTold {
  readonly readings: readonly Reading[];
  readonly findings: readonly Finding[];
}

interface Known {
  readonly told: PcieTold;
  /** What it was made of. */
  readonly answers: boolean | undefined;
  readonly files: AerFiles;
  atMs: number;
}

/** What the PCI functions tell, asked for seldom. An answer that is the same is the same object. */
export class PcieMemory {
  readonly #sys: Tree;
  readonly #known = new Map<string, Known>();

  constructor(sys: Tree) {
    this.#sys = sys;
  }

  /** Undefined where the function is not there. */
  read(address: string, nowMs: number): PcieTold | undefined {
    const known = this.#known.get(address);
    if (known !== undefined && nowMs - known.atMs < PCIE_EVERY_MS) return known.told;
    if (!this.#sys.exists(`bus/pci/devices/${address}`)) return undefined;
    const answers = doesPciFunctionAnswer(this.#sys, address);
    const files = readAerFiles(this.#sys, address);
    if (known !== undefined && known.answers === answers && files.every((text, at) => text === known.files[at])) {
      known.atMs = nowMs;
      return known.told;
    }
    const sample = { aer: parseAerFiles(files), ...(answers === undefined ? {} : { answers }) };
    const told = { readings: pcieErrorReadings(sample), findings: pcieErrorFindings(sample) };
    this.#known.set(address, { told, answers, files, atMs: nowMs });
    return told;
  }
}
