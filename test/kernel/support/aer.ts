import type { Guest } from './guest.ts';

/** Bits of the status registers of Advanced Error Reporting (PCI Express Base Specification). */
export const BAD_TLP = 0x40;
export const POISONED_TLP = 0x1000;
export const MALFORMED_TLP = 0x4_0000;

/**
 * Puts errors of a function, 0000:01:00.0 by default, into the kernel's handler, as the kernel's own tool for it does: bus, device, function, status
 * registers, four words of a header, domain. The module `aer_inject` must be loaded.
 */
export async function injectErrors(
  guest: Guest,
  uncorrectable: number,
  correctable: number,
  at: readonly [bus: number, device: number] = [1, 0],
): Promise<void> {
  const words = [uncorrectable, correctable, 0, 0, 0, 0, 0].flatMap((word) => [...Buffer.from(Uint32Array.of(word).buffer)]);
  const bytes = [...at, 0, 0, ...words].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
  await guest.run(`printf '${bytes}' > /dev/aer_inject`);
}
