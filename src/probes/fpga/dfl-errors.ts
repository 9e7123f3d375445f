import { setBits } from './values.ts';

/** Names of the bits of one register. A bit without a name is shown by its number. */
type BitNames = Readonly<Record<number, string>>;

export type ErrorRegister =
  | 'fme_errors'
  | 'pcie0_errors'
  | 'pcie1_errors'
  | 'nonfatal_errors'
  | 'catfatal_errors'
  | 'inject_errors'
  | 'port_errors';

const PCIE_REVISION_0: BitNames = {
  0: 'tlp_format',
  1: 'write_address',
  2: 'write_length',
  3: 'read_address',
  4: 'read_length',
  5: 'completion_tag',
  6: 'completion_status',
  7: 'completion_timeout',
  8: 'cci_parity',
  9: 'poisoned_tlp',
};
const PCIE_REVISION_1: BitNames = { ...PCIE_REVISION_0, 10: 'malformed_tlp_start', 11: 'malformed_tlp_end', 12: 'receive_fifo_overflow' };
const INJECT: BitNames = { 0: 'catastrophic', 1: 'fatal', 2: 'nonfatal' };

/**
 * Bit names of each register, for revision 0 and revision 1 of the error feature. Source: error tables of OPAE's fpgainfo. A10 and
 * D5005 have revision 0, N6000 has revision 1. Ports of all these boards have revision 1.
 */
const BIT_NAMES: Readonly<Record<ErrorRegister, readonly [BitNames, BitNames]>> = {
  fme_errors: [
    { 0: 'fabric', 1: 'fabric_fifo', 2: 'kti_cdc_parity_0', 3: 'kti_cdc_parity_1', 4: 'iommu_parity', 5: 'pf_vf_mismatch', 6: 'mbp' },
    { 0: 'pr_fifo_parity', 1: 'remote_stp_parity', 5: 'pf_vf_mismatch' },
  ],
  pcie0_errors: [PCIE_REVISION_0, PCIE_REVISION_1],
  pcie1_errors: [PCIE_REVISION_0, PCIE_REVISION_1],
  nonfatal_errors: [
    {
      0: 'temperature_ap1',
      1: 'temperature_ap2',
      2: 'pcie',
      3: 'port_fatal',
      4: 'prochot',
      5: 'pf_vf_mismatch',
      6: 'injected_warning',
      9: 'temperature_ap6',
      10: 'power_ap1',
      11: 'power_ap2',
      12: 'mbp',
    },
    { 2: 'pcie', 3: 'port_fatal', 5: 'pf_vf_mismatch', 6: 'injected_warning' },
  ],
  catfatal_errors: [
    {
      0: 'kti_link',
      1: 'tag_cache',
      2: 'cci',
      3: 'kti_protocol',
      4: 'dram_fatal',
      5: 'iommu_parity',
      6: 'fabric_fatal',
      7: 'poison',
      8: 'injected_fatal',
      9: 'crc',
      10: 'thermal_runaway',
      11: 'injected_catastrophic',
    },
    { 6: 'fabric_fatal', 7: 'poison', 8: 'injected_fatal', 9: 'crc', 11: 'injected_catastrophic' },
  ],
  inject_errors: [INJECT, INJECT],
  port_errors: [
    { 9: 'mmio_read_in_reset', 10: 'mmio_write_in_reset', 49: 'page_fault', 51: 'ap6_event', 52: 'vf_flr' },
    {
      0: 'tx_valid',
      1: 'insufficient_data',
      2: 'payload_overrun',
      3: 'mmio_data_0',
      4: 'mmio_data_1',
      5: 'mmio_read_in_reset',
      6: 'mmio_write_in_reset',
      7: 'mmio_timeout',
      8: 'unexpected_response',
      9: 'tag_occupied',
      10: 'alignment',
      11: 'max_tag',
      12: 'max_read_request',
      13: 'max_payload',
      14: 'malformed_tlp',
      15: 'counter_overflow',
    },
  ],
};

/** Bits that a test of error handling sets. They are no fault. */
export const INJECTED: Readonly<Partial<Record<ErrorRegister, bigint>>> = {
  catfatal_errors: (1n << 8n) | (1n << 11n),
  nonfatal_errors: 1n << 6n,
};

/**
 * Returns the name of one bit. Mainline kernels do not report the revision. In that case the name is used only when both tables
 * agree; otherwise the name is `bit<n>`.
 */
export function bitName(register: ErrorRegister, revision: number | undefined, bit: number): string {
  const [zero, one] = BIT_NAMES[register];
  const name = revision === 0 ? zero[bit] : revision === 1 ? one[bit] : zero[bit] === one[bit] ? zero[bit] : undefined;
  return name ?? `bit${bit}`;
}

/** Returns the names of all set bits, lowest first. */
export function bitNames(register: ErrorRegister, revision: number | undefined, mask: bigint): readonly string[] {
  return setBits(mask).map((bit) => bitName(register, revision, bit));
}
