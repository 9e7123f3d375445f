import type { Reading } from '../../model/metric.ts';
import { shared } from '../../model/shared-metrics.ts';
import { cellAt, type Element } from './document.ts';

export type Severity = 'correctable' | 'uncorrectable';
type Counts = readonly { readonly severity: Severity; readonly location: string; readonly value: number }[];

/** Elements of one count; where a driver splits it, the parts add up. */
const UNIFIED: readonly (readonly [Severity, string, readonly string[]])[] = [
  ['correctable', 'sram', ['sram_correctable']],
  ['uncorrectable', 'sram', ['sram_uncorrectable']],
  ['uncorrectable', 'sram', ['sram_uncorrectable_parity', 'sram_uncorrectable_secded']],
  ['correctable', 'dram', ['dram_correctable']],
  ['uncorrectable', 'dram', ['dram_uncorrectable']],
];
/** Boards up to Volta. `total` is left out: it is the sum of the others. */
const BIT_LOCATIONS = ['device_memory', 'register_file', 'l1_cache', 'l2_cache', 'texture_memory', 'texture_shm', 'cbu'];

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
  return [...counts, ...bits];
}

function countOf(gpu: Element, severity: Severity, location: string, paths: readonly string[]): Counts {
  const cells = paths.map((path) => cellAt(gpu, path));
  const values = cells.map((cell) => (cell.kind === 'number' ? cell.value : undefined));
  if (values.some((value) => value === undefined)) return [];
  return [{ severity, location, value: values.reduce<number>((sum, value) => sum + (value ?? 0), 0) }];
}

export function eccReadings(gpu: Element): readonly Reading[] {
  const volatile = eccCounts(gpu, 'volatile');
  return [
    ...volatile.map(({ value, ...labels }) => ({ metric: 'device_nvidia_ecc_errors_total', labels, value })),
    ...eccCounts(gpu, 'aggregate').map(({ value, ...labels }) => ({ metric: 'device_nvidia_ecc_errors_lifetime', labels, value })),
    ...(['correctable', 'uncorrectable'] as const).flatMap((severity) => totalReading(volatile, severity)),
  ];
}

function totalReading(counts: Counts, severity: Severity): readonly Reading[] {
  const value = totalOf(counts, severity);
  return value === undefined ? [] : [{ metric: shared.errors.name, labels: { kind: `ecc_${severity}` }, value }];
}

/** Undefined when the board counts none of that severity. */
export function totalOf(counts: Counts, severity: Severity): number | undefined {
  const matching = counts.filter((count) => count.severity === severity);
  return matching.length === 0 ? undefined : matching.reduce((sum, { value }) => sum + value, 0);
}
