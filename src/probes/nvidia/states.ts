/** Closed sets of states, and the spellings that drivers use for them. */
export const FABRIC_STATES: Readonly<Record<string, string>> = {
  'not supported': 'not_supported',
  'not started': 'not_started',
  'in progress': 'in_progress',
  completed: 'completed',
};

export const FABRIC_HEALTH: Readonly<Record<string, string>> = {
  healthy: 'healthy',
  unhealthy: 'unhealthy',
  'limited capacity': 'limited_capacity',
};

/** Drivers of the 570 and 580 branches print short and long forms. */
export const RECOVERY_ACTIONS: Readonly<Record<string, string>> = {
  none: 'none',
  reset: 'gpu_reset',
  'gpu reset': 'gpu_reset',
  reboot: 'node_reboot',
  'node reboot': 'node_reboot',
  'drain p2p': 'drain_p2p',
  'drain and reset': 'drain_and_reset',
  'recover imex domain': 'recover_imex_domain',
  'imex domain recovery': 'recover_imex_domain',
};

/** Every state once, in the order of the table. */
export function statesOf(table: Readonly<Record<string, string>>): readonly string[] {
  return [...new Set(Object.values(table))];
}
