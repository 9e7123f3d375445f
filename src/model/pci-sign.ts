/** PCI ids that identify a family's hardware, with or without a driver. Source of the codes: PCI ID repository. */
export interface PciSign {
  /** `0x10de`, lower case. */
  readonly vendor: string;
  /** Prefixes of the class code, without `0x`. */
  readonly classes: readonly string[];
  /** PCI device ids; needed when the vendor makes other hardware of the same class. */
  readonly devices?: readonly string[];
  /** Display name: `Acme accelerator`. */
  readonly what: string;
}
