import type { Labels, Reading } from '../../model/metric.ts';
import { shared } from '../../model/shared-metrics.ts';
import { asBoolean, type Cell, numberValue, type Quantity } from './cell.ts';
import { cellAt, childrenOf, type Element, textAt } from './document.ts';
import { ECC_PATHS, eccReadings } from './ecc.ts';
import { type Field, gpuFields, memoryFields, migFields } from './fields.ts';
import { areInstancesUnread } from './listing.ts';
import { FABRIC_HEALTH, FABRIC_STATES, RECOVERY_ACTIONS, type States, stateOf, statesOf } from './states.ts';

/** Values of one element, and where there were none although there should have been, as `path: text`. */
export interface Told {
  readonly readings: readonly Reading[];
  /** Texts that nobody knows. */
  readonly unknown: readonly string[];
  /** The driver's own errors in place of a value. */
  readonly failed: readonly string[];
}

export function readGpu(gpu: Element, node: { readonly index: number; readonly cudaVersion?: string }): Told {
  const told = readFields(gpu, gpuFields);
  const states = STATE_SETS.map(({ metric, label, table, path, read }) => ({ path, ...stateSet(metric, label, table, read(gpu)) }));
  const readings = [
    ...told.readings,
    ...eccReadings(gpu),
    ...performanceState(gpu),
    ...states.flatMap((set) => set.readings),
    ...processCount(gpu),
    info(gpu, node),
  ];
  const unknown = states.flatMap((set) => (set.unknown === undefined ? [] : [`${set.path}: ${set.unknown}`]));
  const failed = NOT_FIELDS.filter((path) => cellAt(gpu, path).kind === 'error');
  if (areInstancesUnread(gpu)) failed.push('mig_devices');
  const said = failed.map((path) => `${path}: ${textAt(gpu, path)?.trim()}`);
  return { readings, unknown: [...told.unknown, ...unknown], failed: [...told.failed, ...said] };
}

/** A process that computes and draws is listed once for each. An empty list is none, a sentence in its place is not known. */
function processCount(gpu: Element): readonly Reading[] {
  if (gpu.processes === undefined || (typeof gpu.processes === 'string' && gpu.processes.trim() !== '')) return [];
  const pids = childrenOf(gpu, 'processes/process_info').map((process) => cellAt(process, 'pid'));
  const known = new Set(pids.flatMap((pid) => (pid.kind === 'number' ? [pid.value] : [])));
  return [{ metric: 'device_nvidia_processes', value: known.size + pids.filter((pid) => pid.kind !== 'number').length }];
}

/**
 * A MIG instance; of its ECC counters the driver tells uncorrectable SRAM errors alone. `sharesMemory`: its GPU instance is cut
 * into several compute instances, and each is told the memory of all of them: a figure that is nobody's own is left out.
 */
export function readMig(instance: Element, { sharesMemory }: { readonly sharesMemory: boolean }): Told {
  const told = readFields(instance, sharesMemory ? migFields.filter((field) => !memoryFields.includes(field)) : migFields);
  const value = numberValue(cellAt(instance, 'ecc_error_count/volatile_count/sram_uncorrectable'), 'count');
  if (value === undefined) return told;
  return {
    ...told,
    readings: [
      ...told.readings,
      { metric: 'device_nvidia_ecc_errors_total', labels: { severity: 'uncorrectable', location: 'sram' }, value },
      { metric: shared.errors.name, labels: { kind: 'ecc_uncorrectable' }, value },
    ],
  };
}

function readFields(element: Element, fields: readonly Field[]): Told {
  const readings: Reading[] = [];
  const unknown: string[] = [];
  const failed: string[] = [];
  for (const field of fields) {
    const cells = field.paths.map((path) => ({ path, cell: cellAt(element, path) }));
    const value = cells.map(({ cell }) => fieldValue(field, cell)).find((each) => each !== undefined);
    if (value !== undefined) {
      readings.push({ metric: field.metric, ...(field.labels === undefined ? {} : { labels: field.labels }), value });
      continue;
    }
    const odd = cells.find(({ cell }) => cell.kind !== 'absent' && cell.kind !== 'lost' && !isNone(cell));
    if (odd !== undefined) (odd.cell.kind === 'error' ? failed : unknown).push(`${odd.path}: ${textAt(element, odd.path)?.trim()}`);
  }
  return { readings, unknown, failed };
}

/** The word `None`: nothing in the place of a number or a flag, a state among states. */
const isNone = (cell: Cell): boolean => cell.kind === 'text' && cell.value.toLowerCase() === 'none';

function fieldValue(field: Field, cell: Cell): number | bigint | undefined {
  return field.kind === 'flag' ? flagValue(cell) : numberValue(cell, quantityOf(field.metric));
}

/** By the end of the metric's name, where Prometheus wants the unit. */
const QUANTITIES: readonly (readonly [RegExp, Quantity])[] = [
  [/_bytes_per_second$/, 'bytes_per_second'],
  [/_bytes$/, 'bytes'],
  [/_watts$/, 'watts'],
  [/_celsius$/, 'celsius'],
  [/_hertz$/, 'hertz'],
  [/_ratio$/, 'ratio'],
  [/_seconds_total$/, 'seconds'],
  [/_volts$/, 'volts'],
  [/_lanes$/, 'lanes'],
];

function quantityOf(metric: string): Quantity {
  return QUANTITIES.find(([end]) => end.test(metric))?.[1] ?? 'count';
}

function flagValue(cell: Cell): number | undefined {
  const value = asBoolean(cell);
  return value === undefined ? undefined : Number(value);
}

/** `P0` to `P15`; drivers without a state say `Unknown`. */
function performanceState(gpu: Element): readonly Reading[] {
  const state = /^P(\d{1,2})$/.exec(textAt(gpu, 'performance_state')?.trim() ?? '')?.[1];
  return state === undefined || Number(state) > 15 ? [] : [{ metric: 'device_nvidia_performance_state', value: Number(state) }];
}

/** The driver's word in the newest form; the 535 to 570 branches had two flags instead. Where both are told, what asks for something counts. */
export function recoveryAction(gpu: Element): Cell {
  const action = cellAt(gpu, 'gpu_recovery_action');
  if (action.kind !== 'absent' && !isNone(action)) return action;
  const drain = asBoolean(cellAt(gpu, 'gpu_reset_status/drain_and_reset_recommended'));
  const reset = asBoolean(cellAt(gpu, 'gpu_reset_status/reset_required'));
  if (reset === true) return { kind: 'text', value: 'gpu reset' };
  if (drain === true) return { kind: 'text', value: 'drain and reset' };
  return action.kind === 'absent' && (reset ?? drain) !== undefined ? { kind: 'text', value: 'none' } : action;
}

interface StateSet {
  readonly metric: string;
  readonly label: string;
  readonly table: States;
  readonly path: string;
  read(gpu: Element): Cell;
}

const STATE_SETS: readonly StateSet[] = [
  stateAt('fabric_state', 'state', FABRIC_STATES, 'fabric/state'),
  stateAt('fabric_health', 'state', FABRIC_HEALTH, 'fabric/health/summary'),
  { ...stateAt('recovery_action', 'action', RECOVERY_ACTIONS, 'gpu_recovery_action'), read: recoveryAction },
];

/** Told in words, or summed up. */
const NOT_FIELDS: readonly string[] = ['performance_state', ...STATE_SETS.map(({ path }) => path), ...ECC_PATHS];

function stateAt(name: string, label: string, table: States, path: string): StateSet {
  return { metric: `device_nvidia_${name}`, label, table, path, read: (gpu) => cellAt(gpu, path) };
}

/** Nothing at all of a word that is not in the table: all states at 0 would be a lie. */
function stateSet(metric: string, label: string, table: States, cell: Cell): Pick<Told, 'readings'> & { readonly unknown?: string } {
  if (cell.kind !== 'text') return { readings: [] };
  const present = stateOf(table, cell);
  if (present === undefined) return { readings: [], unknown: cell.value };
  return { readings: statesOf(table).map((state) => ({ metric, labels: { [label]: state }, value: Number(state === present) })) };
}

const INFO: Readonly<Record<string, string>> = {
  minor: 'minor_number',
  brand: 'product_brand',
  architecture: 'product_architecture',
  vbios: 'vbios_version',
  board_part: 'board_part_number',
  gpu_part: 'gpu_part_number',
  compute_mode: 'compute_mode',
  gsp_firmware: 'gsp_firmware_version',
};

function info(gpu: Element, { index, cudaVersion }: { readonly index: number; readonly cudaVersion?: string }): Reading {
  const labels: Record<string, string> = { index: String(index), cuda_version: cudaVersion ?? '' };
  for (const [label, path] of Object.entries(INFO)) labels[label] = wordAt(gpu, path) ?? '';
  return { metric: 'device_nvidia_info', labels: labels as Labels, value: 1 };
}

/** A text as it stands when it says something; numbers stay texts (part numbers, serials). */
export function wordAt(element: Element, path: string): string | undefined {
  const { kind } = cellAt(element, path);
  return kind === 'text' || kind === 'number' ? textAt(element, path)?.trim() : undefined;
}
