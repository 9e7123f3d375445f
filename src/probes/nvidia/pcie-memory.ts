import type { NativeFiles } from '../../host/native-files.ts';
import { type PciErrors, PciFunctions } from '../../host/pci-functions.ts';
import type { Tree } from '../../host/tree.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { PCIE_EVERY_MS, pcieErrorReadings } from '../pcie.ts';
import { pcieErrorFindings } from '../pcie-health.ts';

/** What the PCI function of a GPU told. */
export interface PcieTold {
  readonly readings: readonly Reading[];
  readonly findings: readonly Finding[];
}

interface Known {
  readonly errors: PciErrors;
  readonly told: PcieTold;
  atMs: number;
}

/** What the PCI functions tell, asked for seldom. An answer that is the same is the same object. */
export class PcieMemory {
  readonly #functions: PciFunctions;
  readonly #known = new Map<string, Known>();

  /** `native`: the direct way to the kernel, for those who have it loaded. */
  constructor(sys: Tree, native?: () => NativeFiles | undefined) {
    this.#functions = new PciFunctions(sys, { native });
  }

  /** Undefined where the function is not there. `nowMs`: monotonic, and the same for all of one round. */
  read(address: string, nowMs: number): PcieTold | undefined {
    const known = this.#known.get(address);
    if (known !== undefined && nowMs - known.atMs < PCIE_EVERY_MS) return known.told;
    const errors = this.#functions.read(address, nowMs);
    if (known !== undefined && errors === known.errors) {
      known.atMs = nowMs;
      return known.told;
    }
    if (errors === undefined) {
      this.#known.delete(address);
      return undefined;
    }
    const told = { readings: pcieErrorReadings(errors), findings: pcieErrorFindings(errors) };
    this.#known.set(address, { errors, told, atMs: nowMs });
    return told;
  }

  close(): void {
    this.#functions.close();
  }
}
