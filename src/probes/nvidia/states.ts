/** Maps the spellings of drivers to a closed set of states. */
const FABRIC_STATE_WORDS = {
  'not supported': 'not_supported',
  'not started': 'not_started',
  'in progress': 'in_progress',
  completed: 'completed',
} as const;

const FABRIC_HEALTH_WORDS = { healthy: 'healthy', unhealthy: 'unhealthy', 'limited capacity': 'limited_capacity' } as const;

/** Drivers of the 570 and 580 branches print short and long forms. */
const RECOVERY_WORDS = {
  none: 'none',
  reset: 'gpu_reset',
  'gpu reset': 'gpu_reset',
  reboot: 'node_reboot',
  'node reboot': 'node_reboot',
  'drain p2p': 'drain_p2p',
  'drain and reset': 'drain_and_reset',
  'recover imex domain': 'recover_imex_domain',
  'imex domain recovery': 'recover_imex_domain',
  'bus reset': 'bus_reset',
  'system reboot': 'system_reboot',
} as const;

export type FabricState = (typeof FABRIC_STATE_WORDS)[keyof typeof FABRIC_STATE_WORDS];
export type FabricHealth = (typeof FABRIC_HEALTH_WORDS)[keyof typeof FABRIC_HEALTH_WORDS];
export type RecoveryAction = (typeof RECOVERY_WORDS)[keyof typeof RECOVERY_WORDS];

/** Returns undefined for an unknown word. */
const stateIn =
  <T>(table: Readonly<Record<string, T>>) =>
  (word: string): T | undefined =>
    Object.hasOwn(table, word.toLowerCase()) ? table[word.toLowerCase()] : undefined;
export const fabricStateOf = stateIn<FabricState>(FABRIC_STATE_WORDS);
export const fabricHealthOf = stateIn<FabricHealth>(FABRIC_HEALTH_WORDS);
export const recoveryActionOf = stateIn<RecoveryAction>(RECOVERY_WORDS);

/** Recovery action that the driver reports. */
export interface Recovery {
  /** Text as the driver prints it. */
  readonly word: string;
  /** Absent when the text is unknown. */
  readonly action?: RecoveryAction | undefined;
}

/**
 * Combines the recovery action with two flags, which the 535 to 570 branches print instead. When both are present, the one that
 * requests an action has priority.
 */
export function recoveryOf(printed: Recovery | undefined, reset: boolean | undefined, drain?: boolean): Recovery | undefined {
  if (printed !== undefined && printed.action !== 'none') return printed;
  if (reset === true) return { word: 'gpu reset', action: 'gpu_reset' };
  if (drain === true) return { word: 'drain and reset', action: 'drain_and_reset' };
  return printed ?? ((reset ?? drain) === undefined ? undefined : { word: 'none', action: 'none' });
}
