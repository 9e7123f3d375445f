/** What a family's hardware looks like on the PCI bus, driver or not. Vendor and class codes: PCI ID repository. */
export interface PciSign {
  /** `0x10de`, lower case. */
  readonly vendor: string;
  /** Beginning of the class code, without `0x`. */
  readonly classes: readonly string[];
  /** PCI device ids, where the vendor makes other things of the same class. */
  readonly devices?: readonly string[];
  /** What it is, for people: `NVIDIA GPU`. */
  readonly what: string;
}
