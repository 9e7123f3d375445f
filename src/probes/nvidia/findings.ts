import type { Finding, Remedy, Severity } from '../../model/health.ts';
import { asBoolean, type Cell } from './cell.ts';
import { cellAt, type Element, firstCell, textAt } from './document.ts';
import { memoryFindings } from './memory-findings.ts';
import { recoveryAction } from './readings.ts';
import { FABRIC_HEALTH, FABRIC_STATES, RECOVERY_ACTIONS, stateOf } from './states.ts';

/** What one `<gpu>` element says of the GPU's health. */
export function gpuFindings(gpu: Element): readonly Finding[] {
  return [
    ...lost(gpu),
    ...recovery(gpu),
    ...memoryFindings(gpu),
    ...throttling(gpu),
    ...temperatureFindings(gpu),
    ...fabric(gpu),
    ...linkWidth(gpu),
  ];
}

/** Live values of a lost GPU are replaced by a sentence, its identity stays readable. */
const LIVE = ['temperature/gpu_temp', 'utilization/gpu_util', 'fb_memory_usage/used', 'remapped_rows', 'clocks/sm_clock', 'fan_speed'];

function lost(gpu: Element): readonly Finding[] {
  const find = (kind: Cell['kind']): string | undefined => LIVE.find((live) => cellAt(gpu, live).kind === kind);
  const said = (path: string): string => `${path}: ${textAt(gpu, path)?.trim()}`;
  const path = find('lost');
  if (path !== undefined) return [{ type: 'GpuLost', status: true, reason: 'GpuIsLost', message: said(path) }];
  if (find('number') !== undefined) return [{ type: 'GpuLost', status: false, reason: 'Answers', message: 'the GPU answers' }];
  const failed = find('error');
  return failed === undefined ? [] : [{ type: 'GpuLost', status: 'unknown', reason: 'ValuesUnreadable', message: said(failed) }];
}

const ACTIONS: Readonly<Record<string, { readonly reason: string; readonly severity: Severity; readonly remedy: Remedy }>> = {
  gpu_reset: { reason: 'GpuReset', severity: 'fatal', remedy: 'reset' },
  node_reboot: { reason: 'NodeReboot', severity: 'fatal', remedy: 'reboot' },
  drain_p2p: { reason: 'DrainP2p', severity: 'degraded', remedy: 'restart-workload' },
  drain_and_reset: { reason: 'DrainAndReset', severity: 'fatal', remedy: 'reset' },
  recover_imex_domain: { reason: 'RecoverImexDomain', severity: 'degraded', remedy: 'inspect' },
  bus_reset: { reason: 'BusReset', severity: 'fatal', remedy: 'reset' },
  system_reboot: { reason: 'SystemReboot', severity: 'fatal', remedy: 'reboot' },
};

/** Instance of a `RecoveryAction` that no word of the driver's own asks for. */
const IN_PLACE_OF_VALUES = 'values';

function recovery(gpu: Element): readonly Finding[] {
  const cell = recoveryAction(gpu);
  if (cell.kind === 'absent') return needsReset(gpu);
  const action = stateOf(RECOVERY_ACTIONS, cell);
  if (action === undefined || cell.kind !== 'text') return [];
  const asked = ACTIONS[action];
  const message = `the driver asks for: ${cell.value}`;
  return [
    asked === undefined
      ? { type: 'RecoveryAction', status: false, reason: 'None', message: 'the driver asks for nothing' }
      : { type: 'RecoveryAction', status: true, message, ...asked },
  ];
}

/** Drivers without a word of their own say it in place of values. Values that are told take back only what was said in their place. */
function needsReset(gpu: Element): readonly Finding[] {
  const base = { type: 'RecoveryAction', instance: IN_PLACE_OF_VALUES };
  const path = LIVE.find((live) => /^\[?gpu requires reset\]?$/i.test(textAt(gpu, live)?.trim() ?? ''));
  if (path !== undefined) return [{ ...base, status: true, reason: 'GpuReset', message: `${path}: ${textAt(gpu, path)?.trim()}` }];
  if (!LIVE.some((live) => cellAt(gpu, live).kind === 'number')) return [];
  return [{ ...base, status: false, reason: 'None', message: 'values are told, and no reset is asked for' }];
}

function throttling(gpu: Element): readonly Finding[] {
  return [
    ...throttle(gpu, 'hw_thermal_slowdown', 'ThermalSlowdown', 'HardwareThermalSlowdown'),
    ...throttle(gpu, 'hw_power_brake_slowdown', 'PowerBrake', 'HardwarePowerBrake'),
  ];
}

function throttle(gpu: Element, suffix: string, type: string, reason: string): readonly Finding[] {
  const cell = firstCell(gpu, [
    `clocks_event_reasons/clocks_event_reason_${suffix}`,
    `clocks_throttle_reasons/clocks_throttle_reason_${suffix}`,
  ]);
  const status = asBoolean(cell);
  return status === undefined
    ? []
    : [{ type, status, reason: status ? reason : 'NotThrottled', message: `${suffix}: ${status ? 'active' : 'not active'}` }];
}

export const TEMPERATURE = 'temperature/gpu_temp';
export const SLOWDOWN = 'temperature/gpu_temp_slow_threshold';
export const MARGIN = 'temperature/gpu_temp_tlimit';
export const SLOWDOWN_MARGIN = 'temperature/gpu_temp_slow_tlimit_threshold';
export const OVER_TEMPERATURE = 'OverTemperature';

/** Of degrees and their limit, or of degrees left and theirs; undefined where neither is told. */
export function isOver(degrees?: number, slow?: number, margin?: number, slowMargin?: number): boolean | undefined {
  if (degrees !== undefined && slow !== undefined) return degrees >= slow;
  return margin === undefined || slowMargin === undefined ? undefined : margin <= slowMargin;
}

/** Degrees on boards up to Ampere; later ones tell how many degrees are left. */
export function temperatureFindings(gpu: Element): readonly Finding[] {
  const degrees = degreesAt(gpu, TEMPERATURE);
  const slow = degreesAt(gpu, SLOWDOWN);
  const margin = degreesAt(gpu, MARGIN);
  const slowMargin = degreesAt(gpu, SLOWDOWN_MARGIN);
  const status = isOver(degrees, slow, margin, slowMargin);
  if (status === undefined) return [];
  return degrees !== undefined && slow !== undefined
    ? [overTemperature(status, `${degrees} °C, slows down at ${slow} °C`, `slows down at ${slow} °C`)]
    : [overTemperature(status, `${margin} °C left, slows down at ${slowMargin} °C`, `slows down at ${slowMargin} °C left`)];
}

/** Below the limit the words stay the same, so that nothing is judged anew at each degree. */
function overTemperature(status: boolean, at: string, below: string): Finding {
  return { type: OVER_TEMPERATURE, status, reason: status ? 'AtSlowdownTemperature' : 'BelowLimit', message: status ? at : below };
}

function fabric(gpu: Element): readonly Finding[] {
  const state = stateOf(FABRIC_STATES, cellAt(gpu, 'fabric/state'));
  const health = stateOf(FABRIC_HEALTH, cellAt(gpu, 'fabric/health/summary'));
  const findings: Finding[] = [];
  if (state !== undefined && state !== 'not_supported') findings.push(fabricState(gpu, state));
  if (health !== undefined) {
    const reason = { healthy: 'Healthy', unhealthy: 'Unhealthy', limited_capacity: 'LimitedCapacity' }[health] ?? 'Unhealthy';
    const severity: Severity = health === 'limited_capacity' ? 'degraded' : 'fatal';
    findings.push({ type: 'FabricUnhealthy', status: health !== 'healthy', reason, message: `fabric health: ${health}`, severity });
  }
  return findings;
}

function fabricState(gpu: Element, state: string): Finding {
  const status = textAt(gpu, 'fabric/status')?.trim() ?? '';
  const hasFailed = state === 'completed' && !/^(?:success|n\/a|)$/i.test(status);
  const reason = hasFailed ? 'RegistrationFailed' : { not_started: 'NotStarted', in_progress: 'InProgress' }[state];
  return {
    type: 'FabricNotReady',
    status: reason !== undefined,
    reason: reason ?? 'Ready',
    message: `fabric state: ${state}, status: ${status || 'none'}`,
  };
}

/** Boards in the cloud run at a part of their maximum and are sound, so a link is compared with its own past. */
function linkWidth(gpu: Element): readonly Finding[] {
  const cell = cellAt(gpu, 'pci/pci_gpu_link_info/link_widths/current_link_width');
  if (cell.kind !== 'number' || cell.value <= 0) return [];
  return [
    { type: 'PcieLinkDegraded', reason: 'NarrowerThanBefore', message: `PCIe link x${cell.value}`, level: cell.value, tellsHighest: true },
  ];
}

const degreesAt = (gpu: Element, path: string): number | undefined => {
  const cell = cellAt(gpu, path);
  return cell.kind === 'number' && (cell.quantity === 'celsius' || cell.quantity === 'base') ? cell.value : undefined;
};
