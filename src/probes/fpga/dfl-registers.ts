import type { Finding } from '../../model/health.ts';
import type { DeviceFiles, FileFact } from '../kit/device-files.ts';
import type { ReasonOf } from '../kit/finding.ts';
import type { conditions } from './conditions.ts';
import { metrics } from './metrics.ts';
import type { ReportBuilder } from './report-builder.ts';
import { hex, isAllOnes, parseRegister, setBits } from './values.ts';

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

/** File layout of one of the two drivers. Paths are relative to the management engine or to the port. */
export interface Layout {
  readonly stack: 'dfl' | 'opae';
  readonly classDirectory: string;
  readonly engine: RegExp;
  readonly port: RegExp;
  readonly registers: Readonly<Partial<Record<ErrorRegister, string>>>;
  /** Path from the engine to the file with the interface id. `*` matches digits. */
  readonly compatId: readonly string[];
}

const COMMON_REGISTERS = {
  pcie0_errors: 'errors/pcie0_errors',
  pcie1_errors: 'errors/pcie1_errors',
  nonfatal_errors: 'errors/nonfatal_errors',
  catfatal_errors: 'errors/catfatal_errors',
} as const;

/** Source: Linux Documentation/ABI/testing/sysfs-platform-dfl-fme. */
export const DFL: Layout = {
  stack: 'dfl',
  classDirectory: 'class/fpga_region',
  engine: /^dfl-fme\.\d+$/,
  port: /^dfl-port\.\d+$/,
  registers: { ...COMMON_REGISTERS, fme_errors: 'errors/fme_errors', inject_errors: 'errors/inject_errors' },
  compatId: ['dfl-fme-region.*', 'fpga_region', 'region*', 'compat_id'],
};

/** OPAE's own driver, which is older than DFL in the kernel. */
export const OPAE: Layout = {
  stack: 'opae',
  classDirectory: 'class/fpga',
  engine: /^intel-fpga-fme\.\d+$/,
  port: /^intel-fpga-port\.\d+$/,
  registers: { ...COMMON_REGISTERS, fme_errors: 'errors/fme-errors/errors', inject_errors: 'errors/inject_error' },
  compatId: ['pr', 'interface_id'],
};

/** Masks of the error registers of a board. `unknown` means that the register exists but cannot be read now. */
type ErrorMasks = ReadonlyMap<ErrorRegister, bigint | 'unknown'>;

export function readErrorMasks(files: DeviceFiles, registers: Layout['registers']): ErrorMasks {
  const masks = new Map<ErrorRegister, bigint | 'unknown'>();
  for (const [register, file] of Object.entries(registers)) {
    const mask = maskOf(files.once(file, parseRegister));
    if (mask !== undefined) masks.set(register as ErrorRegister, mask);
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
