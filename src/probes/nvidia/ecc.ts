import type { Reading } from '../../model/metric.ts';
import { shared } from '../../model/shared-metrics.ts';
import { numberValue } from './cell.ts';
import { cellAt, type Element } from './document.ts';

export type Severity = 'correctable' | 'uncorrectable';
interface Count {
  readonly severity: Severity;
  readonly location: string;
  /** Absent when the driver failed to tell it, so that no sum can be made. */
  readonly value?: bigint;
}
type Counts = readonly Count[];

/** Elements of one count; where a driver splits it, the parts add up. The first form that is there counts. */
const UNIFIED: readonly (readonly [Severity, string, readonly string[]])[] = [
  ['correctable', 'sram', ['sram_correctable']],
  ['uncorrectable', 'sram', ['sram_uncorrectable_parity', 'sram_uncorrectable_secded']],
  ['uncorrectable', 'sram', ['sram_uncorrectable']],
  ['correctable', 'dram', ['dram_correctable']],
  ['uncorrectable', 'dram', ['dram_uncorrectable']],
];
/** Boards up to Volta. `total` is left out: it is the sum of the others. */
const BIT_LOCATIONS = ['device_memory', 'register_file', 'l1_cache', 'l2_cache', 'texture_memory', 'texture_shm', 'cbu'];

/** All places where a driver tells errors per memory. */
export const ECC_PATHS: readonly string[] = ['volatile', 'aggregate'].flatMap((period) => [
  ...UNIFIED.flatMap(([, , elements]) => elements).map((element) => `ecc_errors/${period}/${element}`),
  ...['single_bit', 'double_bit'].flatMap((bits) => BIT_LOCATIONS.map((location) => `ecc_errors/${period}/${bits}/${location}`)),
]);

/** Errors per memory below `ecc_errors/volatile` or `ecc_errors/aggregate`; what the board does not count is not there. */
export function eccCounts(gpu: Element, period: 'volatile' | 'aggregate'): Counts {
  const base = `ecc_errors/${period}`;
  const counts = UNIFIED.flatMap(([severity, location, elements]) =>
    countOf(
      gpu,
      severity,
      location,
      elements.map((element) => `${base}/${element}`),
    ),
  );
  const bits = BIT_LOCATIONS.flatMap((location) => [
    ...countOf(gpu, 'correctable', location, [`${base}/single_bit/${location}`]),
    ...countOf(gpu, 'uncorrectable', location, [`${base}/double_bit/${location}`]),
  ]);
  const isFirst = ({ severity, location }: Count, at: number): boolean =>
    counts.findIndex((other) => other.severity === severity && other.location === location) === at;
  return [...counts.filter(isFirst), ...bits];
}

function countOf(gpu: Element, severity: Severity, location: string, paths: readonly string[]): Counts {
  const cells = paths.map((path) => cellAt(gpu, path));
  if (cells.every(({ kind }) => kind === 'absent')) return [];
  const values = cells.flatMap((cell) => numberValue(cell, 'count') ?? []);
  if (values.length < cells.length) return [{ severity, location }];
  return [{ severity, location, value: values.reduce<bigint>((sum, value) => sum + BigInt(value), 0n) }];
}

export function eccReadings(gpu: Element): readonly Reading[] {
  const volatile = eccCounts(gpu, 'volatile');
  return [
    ...volatile.flatMap((count) => countReading('device_nvidia_ecc_errors_total', count)),
    ...eccCounts(gpu, 'aggregate').flatMap((count) => countReading('device_nvidia_ecc_errors_lifetime', count)),
    ...(['correctable', 'uncorrectable'] as const).flatMap((severity) => totalReading(volatile, severity)),
  ];
}

function countReading(metric: string, { severity, location, value }: Count): readonly Reading[] {
  return value === undefined ? [] : [{ metric, labels: { severity, location }, value: plain(value) }];
}

function totalReading(counts: Counts, severity: Severity): readonly Reading[] {
  const value = totalOf(counts, severity);
  return value === undefined ? [] : [{ metric: shared.errors.name, labels: { kind: `ecc_${severity}` }, value: plain(value) }];
}

/** Undefined when the board counts none of that severity, or one of the counts could not be read. */
export function totalOf(counts: Counts, severity: Severity): bigint | undefined {
  const values = counts.filter((count) => count.severity === severity).map(({ value }) => value);
  if (values.length === 0 || values.includes(undefined)) return undefined;
  return values.reduce<bigint>((sum, value) => sum + (value ?? 0n), 0n);
}

const plain = (value: bigint): number | bigint => (value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value);
