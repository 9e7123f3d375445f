import type { Finding } from '../../model/health.ts';
import type { DeviceFiles, FileFact } from '../kit/device-files.ts';
import type { ReasonOf } from '../kit/finding.ts';
import type { conditions } from './conditions.ts';
import { bitNames, type ErrorRegister, INJECTED } from './dfl-errors.ts';
import type { Layout } from './dfl-layout.ts';
import { metrics } from './metrics.ts';
import type { ReportBuilder } from './report-builder.ts';
import { hex, isAllOnes, parseRegister } from './values.ts';

/** Masks of the error registers of a board. `unknown` means that the register exists but cannot be read now. */
export type ErrorMasks = ReadonlyMap<ErrorRegister, bigint | 'unknown'>;

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
