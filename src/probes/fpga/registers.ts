import type { DeviceFiles, FileFact } from '../kit/device-files.ts';
import type { FindingDetails, ReportBuilder } from './board.ts';
import { metrics } from './metrics.ts';

/** Names of the bits of one register. A bit without a name is shown by its number. */
type BitNames = Readonly<Record<number, string>>;

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

/** One error register, in a file of its name. */
interface Register {
  /** Names of its bits in revision 0 and in revision 1 of the error feature. */
  readonly names: readonly [BitNames, BitNames];
  /** Bits that a test of error handling sets. They are no fault. */
  readonly injected?: bigint;
  /** Condition of the other bits; a port judges its own register. */
  readonly condition?: RegisterCondition;
  /** What single bits say beyond the condition. */
  readonly says?: (mask: bigint, revision: number | undefined) => FindingDetails<RegisterCondition>;
}

type RegisterCondition = 'FatalError' | 'NonfatalError' | 'FmeError' | 'PcieInterfaceError';

const COMPLETION_TIMEOUT = 1n << 7n;
const THERMAL_RUNAWAY = 1n << 10n;

const PCIE_ERRORS: Register = {
  names: [PCIE_REVISION_0, PCIE_REVISION_1],
  condition: 'PcieInterfaceError',
  says: (mask) => ((mask & COMPLETION_TIMEOUT) === 0n ? {} : { reason: 'CompletionTimeout', severity: 'fatal' }),
};

/**
 * The registers of a management engine, and that of a port. Sources: Linux Documentation/ABI/testing/sysfs-platform-dfl-fme; names from the
 * error tables of OPAE's fpgainfo. A10 and D5005 have revision 0, N6000 has revision 1. Ports of all these boards have revision 1.
 */
const REGISTERS = {
  pcie0_errors: PCIE_ERRORS,
  pcie1_errors: PCIE_ERRORS,
  nonfatal_errors: {
    names: [
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
    injected: 1n << 6n,
    condition: 'NonfatalError',
  },
  catfatal_errors: {
    names: [
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
    injected: (1n << 8n) | (1n << 11n),
    condition: 'FatalError',
    says: (mask, revision) => (revision !== 1 && (mask & THERMAL_RUNAWAY) !== 0n ? { reason: 'ThermalRunaway', remedy: 'replace' } : {}),
  },
  fme_errors: {
    names: [
      { 0: 'fabric', 1: 'fabric_fifo', 2: 'kti_cdc_parity_0', 3: 'kti_cdc_parity_1', 4: 'iommu_parity', 5: 'pf_vf_mismatch', 6: 'mbp' },
      { 0: 'pr_fifo_parity', 1: 'remote_stp_parity', 5: 'pf_vf_mismatch' },
    ],
    condition: 'FmeError',
  },
  inject_errors: { names: [INJECT, INJECT], injected: -1n },
  port_errors: {
    names: [
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
  },
} as const satisfies Readonly<Record<string, Register>>;

type ErrorRegister = keyof typeof REGISTERS;
const ENGINE: readonly ErrorRegister[] = [
  'catfatal_errors',
  'nonfatal_errors',
  'fme_errors',
  'pcie0_errors',
  'pcie1_errors',
  'inject_errors',
];

const INJECTING = ['nonfatal_errors', 'catfatal_errors', 'inject_errors'] as const;

/**
 * Returns the name of one bit. Mainline kernels do not report the revision. In that case the name is used only when both tables
 * agree; otherwise the name is `bit<n>`.
 */
export function bitName(register: ErrorRegister, revision: number | undefined, bit: number): string {
  const [zero, one]: readonly [BitNames, BitNames] = REGISTERS[register].names;
  const name = revision === 0 ? zero[bit] : revision === 1 ? one[bit] : zero[bit] === one[bit] ? zero[bit] : undefined;
  return name ?? `bit${bit}`;
}

/** Returns the names of all set bits, lowest first. */
export function bitNames(register: ErrorRegister, revision: number | undefined, mask: bigint): readonly string[] {
  return setBits(mask).map((bit) => bitName(register, revision, bit));
}

/** Masks of the error registers of a board. `unknown` means that the register exists but cannot be read now. */
type ErrorMasks = ReadonlyMap<ErrorRegister, bigint | 'unknown'>;

export function readErrorMasks(files: DeviceFiles): ErrorMasks {
  const masks = new Map<ErrorRegister, bigint | 'unknown'>();
  for (const register of ENGINE) {
    const mask = maskOf(files.once(`errors/${register}`, parseRegister));
    if (mask !== undefined) masks.set(register, mask);
  }
  return masks;
}

/** A register of all ones means that the board does not answer. */
export function maskOf(fact: FileFact<bigint>): bigint | 'unknown' | undefined {
  if (fact.value !== undefined) return isAllOnes(fact.value) ? 'unknown' : fact.value;
  return fact.isUnknown ? 'unknown' : undefined;
}

const parseRevision = (text: string): number | undefined => (/^\d{1,3}$/.test(text.trim()) ? Number(text) : undefined);

/** Returns the revision of the bit table; mainline kernels do not report it. */
export function readRevision(files: DeviceFiles): number | undefined {
  return files.value('errors/revision', parseRevision);
}

/** Adds one series for each set bit. */
export function addErrorBits(builder: ReportBuilder, register: ErrorRegister, revision: number | undefined, mask: bigint): void {
  for (const bit of bitNames(register, revision, mask)) builder.add(metrics.error, 1, { register, bit });
}

/** Judges the registers of a management engine. Pure. */
export function addEngineErrors(builder: ReportBuilder, masks: ErrorMasks, revision: number | undefined): void {
  for (const [instance, mask] of masks) {
    const { condition, injected = 0n, says }: Register = REGISTERS[instance];
    if (mask !== 'unknown') addErrorBits(builder, instance, revision, mask);
    if (condition === undefined) continue;
    const real = mask === 'unknown' ? 0n : mask & ~injected;
    if (mask === 'unknown') builder.find(condition, 'unknown', `${instance} cannot be read`, { instance });
    else if (real === 0n) builder.find(condition, false, `${instance} is ${hex(mask)}`, { instance });
    else {
      const message = `${instance} is ${hex(mask)}: ${bitNames(instance, revision, real).join(', ')}`;
      builder.find(condition, true, message, { instance, ...says?.(real, revision) });
    }
  }
  if (masks.size === 0) return;
  const shown = INJECTING.map((register) => [register, masks.get(register) ?? 0n, REGISTERS[register].injected] as const);
  const injections = shown.flatMap(([register, mask, injected]) =>
    mask === 'unknown' || (mask & injected) === 0n ? [] : [`${register} is ${hex(mask)}`],
  );
  if (injections.length > 0) builder.find('ErrorInjected', true, injections.join(', '));
  else if (!shown.some(([, mask]) => mask === 'unknown')) builder.find('ErrorInjected', false, 'no error is injected');
  else builder.find('ErrorInjected', 'unknown', 'the registers that show injected errors cannot be read', { reason: 'Clear' });
}

/** Parses a register: `0x1f`, or a decimal number (older drivers print zero without a prefix). */
export function parseRegister(text: string): bigint | undefined {
  const trimmed = text.trim();
  return /^(?:0x[0-9a-f]{1,32}|\d{1,20})$/i.test(trimmed) ? BigInt(trimmed) : undefined;
}

/** Parses `0`, `1`, `0x0` or `0x1`. */
export function parseFlag(text: string): boolean | undefined {
  const value = parseRegister(text);
  return value === 0n ? false : value === 1n ? true : undefined;
}

/** Parses an identifier of 128 bits, with or without dashes. Returns it in lower case without dashes. */
export function parseId(text: string): string | undefined {
  const id = text.trim().replaceAll('-', '').toLowerCase();
  return /^[0-9a-f]{32}$/.test(id) ? id : undefined;
}

/** Returns true when all bits of an identifier or of a 64-bit register are set, which means that the board does not answer. */
export function isAllOnes(value: string | bigint): boolean {
  return typeof value === 'bigint' ? value === 0xffff_ffff_ffff_ffffn : /^f{16,}$/.test(value);
}

/** Returns the positions of the set bits, lowest first. */
export function setBits(mask: bigint): number[] {
  const bits: number[] = [];
  for (let bit = 0, rest = mask; rest > 0n; bit += 1, rest >>= 1n) if ((rest & 1n) === 1n) bits.push(bit);
  return bits;
}

export const hex = (value: bigint): string => `0x${value.toString(16)}`;
