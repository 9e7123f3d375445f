import type { Remedy, Severity } from '../../model/health.ts';

/** States of the registration with the NVLink fabric, and its healths. Their numbers in nvml.h are the positions, from 1 on. */
export const FABRIC_STATES = ['not_started', 'in_progress', 'completed'] as const;
export const FABRIC_HEALTHS = ['healthy', 'unhealthy', 'limited_capacity'] as const;
export type FabricState = (typeof FABRIC_STATES)[number];
export type FabricHealth = (typeof FABRIC_HEALTHS)[number];

/**
 * Faults that the health mask of the registration names, the worst first. A reset helps only where the routes of this GPU are wrong: the others
 * are to be repaired where the fabric is managed, or end by themselves.
 */
export const FABRIC_FAULTS = [
  { fault: 'route_unhealthy', ...means('RouteUnhealthy', 'fatal', 'reset', 'a route of the GPU is unhealthy') },
  { fault: 'no_partition', ...means('NoPartition', 'fatal', 'inspect', 'the fabric manager has given the GPU no partition') },
  { fault: 'too_few_nvlinks', ...means('TooFewNvLinks', 'fatal', 'inspect', 'the GPU has too few NVLinks') },
  { fault: 'system_guid', ...means('WrongConfiguration', 'fatal', 'inspect', 'the GUID of the system is wrong') },
  { fault: 'chassis_serial', ...means('WrongConfiguration', 'fatal', 'inspect', 'the serial number of the chassis is wrong') },
  { fault: 'gpu_firmware', ...means('WrongConfiguration', 'fatal', 'inspect', 'the firmware of the GPU does not fit the fabric') },
  { fault: 'gpu_location', ...means('WrongConfiguration', 'fatal', 'inspect', 'the location of the GPU is wrong') },
  { fault: 'gpu_state', ...means('WrongConfiguration', 'fatal', 'inspect', 'the state of the GPU does not fit the fabric') },
  { fault: 'configuration', ...means('WrongConfiguration', 'fatal', 'inspect', 'the configuration is wrong') },
  { fault: 'route_recovery', ...means('RouteRecovery', 'degraded', 'inspect', 'a recovery of routes is running') },
  {
    fault: 'access_timeout_recovery',
    ...means('AccessTimeoutRecovery', 'degraded', 'inspect', 'a recovery of an access timeout is running'),
  },
  { fault: 'degraded_bandwidth', ...means('DegradedBandwidth', 'degraded', 'inspect', 'the bandwidth is degraded') },
] as const;
export type FabricFault = (typeof FABRIC_FAULTS)[number];

function means<R extends string>(reason: R, severity: Severity, remedy: Remedy, meaning: string) {
  return { reason, severity, remedy, meaning } as const;
}

/**
 * Actions that the driver asks for. Their numbers in `nvmlDeviceGpuRecoveryAction_t` of nvml.h, in the field of the library and in Xid 154,
 * are the positions. `word` is the text of `nvidia-smi`. Some drivers of the 570 and 580 branches print `oldWord`.
 */
export const RECOVERY_ACTIONS = [
  { action: 'none', word: 'None' },
  { action: 'gpu_reset', word: 'GPU Reset', oldWord: 'Reset', ...needs('GpuReset', 'fatal', 'reset', 'a reset of the GPU') },
  { action: 'node_reboot', word: 'Node Reboot', oldWord: 'Reboot', ...needs('NodeReboot', 'fatal', 'reboot', 'a reboot of the node') },
  { action: 'drain_p2p', word: 'Drain P2P', ...needs('DrainP2p', 'degraded', 'restart-workload', 'an end of all peer-to-peer workloads') },
  {
    action: 'drain_and_reset',
    word: 'Drain and Reset',
    ...needs('DrainAndReset', 'fatal', 'reset', 'an end of its workloads and then a reset of the GPU'),
  },
  {
    action: 'recover_imex_domain',
    word: 'Recover IMEX Domain',
    oldWord: 'IMEX Domain Recovery',
    ...needs('RecoverImexDomain', 'degraded', 'inspect', 'a recovery of the IMEX domain'),
  },
  { action: 'bus_reset', word: 'Bus Reset', ...needs('BusReset', 'fatal', 'reset', 'a reset of the bus') },
  { action: 'system_reboot', word: 'System Reboot', ...needs('SystemReboot', 'fatal', 'reboot', 'a reboot of the whole system') },
] as const;
export type RecoveryAction = (typeof RECOVERY_ACTIONS)[number];

function needs<R extends string>(reason: R, severity: Severity, remedy: Remedy, meaning: string) {
  return { need: { reason, severity, remedy }, meaning } as const;
}

/** Recovery action that the driver reports. */
export interface Recovery {
  /** Text as the driver prints it. */
  readonly word: string;
  /** Absent when the action is unknown. */
  readonly action?: RecoveryAction | undefined;
}

/**
 * Combines the recovery action with two flags, which the 535 to 570 branches print instead. When both are present, the one that
 * requests an action has priority.
 */
export function combinedRecovery(printed: Recovery | undefined, reset: boolean | undefined, drain?: boolean): Recovery | undefined {
  if (printed !== undefined && printed.action?.action !== 'none') return printed;
  if (reset === true) return { word: 'gpu reset', action: RECOVERY_ACTIONS[1] };
  if (drain === true) return { word: 'drain and reset', action: RECOVERY_ACTIONS[4] };
  return printed ?? ((reset ?? drain) === undefined ? undefined : { word: 'none', action: RECOVERY_ACTIONS[0] });
}
