import type { Finding } from '../../model/health.ts';
import type { DeviceFiles, FileFact } from '../kit/device-files.ts';
import type { ReasonOf } from '../kit/finding.ts';
import type { ReportBuilder } from './board.ts';
import type { conditions } from './conditions.ts';
import { metrics } from './metrics.ts';

/** Names of the bits of one register. A bit without a name is shown by its number. */
type BitNames = Readonly<Record<number, string>>;

type ErrorRegister =
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
const INJECTED: Readonly<Partial<Record<ErrorRegister, bigint>>> = {
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

/** Registers of a management engine, in files of their names. Source: Linux Documentation/ABI/testing/sysfs-platform-dfl-fme. */
const ENGINE_REGISTERS = ['pcie0_errors', 'pcie1_errors', 'nonfatal_errors', 'catfatal_errors', 'fme_errors', 'inject_errors'] as const;

/** Masks of the error registers of a board. `unknown` means that the register exists but cannot be read now. */
type ErrorMasks = ReadonlyMap<ErrorRegister, bigint | 'unknown'>;

export function readErrorMasks(files: DeviceFiles): ErrorMasks {
  const masks = new Map<ErrorRegister, bigint | 'unknown'>();
  for (const register of ENGINE_REGISTERS) {
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

const COMPLETION_TIMEOUT = 1n << 7n;
const THERMAL_RUNAWAY = 1n << 10n;

/** Judges the registers of a management engine. Pure. */
export function addEngineErrors(builder: ReportBuilder, masks: ErrorMasks, revision: number | undefined): void {
  for (const [register, mask] of masks) if (mask !== 'unknown') addErrorBits(builder, register, revision, mask);
  judge(builder, masks, revision, 'catfatal_errors', 'FatalError', (mask) => {
    const isRunaway = revision !== 1 && (mask & THERMAL_RUNAWAY) !== 0n;
    return isRunaway ? { reason: 'ThermalRunaway', remedy: 'replace' } : { reason: 'RegisterSet' };
  });
  judge(builder, masks, revision, 'nonfatal_errors', 'NonfatalError', () => ({ reason: 'RegisterSet' }));
  judge(builder, masks, revision, 'fme_errors', 'FmeError', () => ({ reason: 'RegisterSet' }));
  for (const register of ['pcie0_errors', 'pcie1_errors'] as const) {
    judge(builder, masks, revision, register, 'PcieInterfaceError', (mask) =>
      (mask & COMPLETION_TIMEOUT) === 0n ? { reason: 'RegisterSet' } : { reason: 'CompletionTimeout', severity: 'fatal' },
    );
  }
  addInjection(builder, masks);
}

type RegisterCondition = 'FatalError' | 'NonfatalError' | 'FmeError' | 'PcieInterfaceError';
type Verdict<T extends RegisterCondition> = Pick<Finding, 'severity' | 'remedy'> & { readonly reason: ReasonOf<(typeof conditions)[T]> };

function judge<T extends RegisterCondition>(
  builder: ReportBuilder,
  masks: ErrorMasks,
  revision: number | undefined,
  register: ErrorRegister,
  type: T,
  verdictOf: (mask: bigint) => Verdict<T>,
): void {
  const mask = masks.get(register);
  if (mask === undefined) return;
  const part = { instance: register };
  const common: RegisterCondition = type;
  const real = mask === 'unknown' ? 0n : mask & ~(INJECTED[register] ?? 0n);
  if (mask === 'unknown') builder.find(common, 'unknown', 'RegisterSet', `${register} cannot be read`, part);
  else if (real === 0n) builder.find(common, false, 'Clear', `${register} is ${hex(mask)}`, part);
  else {
    const { reason, ...more } = verdictOf(real);
    builder.find(type, true, reason, `${register} is ${hex(mask)}: ${bitNames(register, revision, real).join(', ')}`, { ...part, ...more });
  }
}

const INJECTION_REGISTERS: ReadonlySet<string> = new Set(['inject_errors', ...Object.keys(INJECTED)]);

function addInjection(builder: ReportBuilder, masks: ErrorMasks): void {
  const injected = [...masks].flatMap(([register, mask]) => {
    if (mask === 'unknown') return [];
    const bits = register === 'inject_errors' ? mask : mask & (INJECTED[register] ?? 0n);
    return bits === 0n ? [] : [`${register} is ${hex(mask)}`];
  });
  if (masks.size === 0) return;
  const isActive = injected.length > 0;
  const isUnknown = !isActive && [...masks].some(([register, mask]) => mask === 'unknown' && INJECTION_REGISTERS.has(register));
  if (isUnknown) builder.find('ErrorInjected', 'unknown', 'Clear', 'the registers that show injected errors cannot be read');
  else builder.find('ErrorInjected', isActive, isActive ? 'InjectionActive' : 'Clear', injected.join(', ') || 'no error is injected');
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

/** Parses an unsigned decimal counter of 64 bits. The result is a number while that is exact, otherwise a bigint. */
export function parseCount(text: string): number | bigint | undefined {
  const trimmed = text.trim();
  if (!/^\d{1,20}$/.test(trimmed)) return undefined;
  const value = BigInt(trimmed);
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
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
