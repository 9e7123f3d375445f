import type { Cell } from './cell.ts';

/** A closed set of states by the spellings that drivers use for them. */
export type States = Readonly<Record<string, string>>;

export const FABRIC_STATES: States = {
  'not supported': 'not_supported',
  'not started': 'not_started',
  'in progress': 'in_progress',
  completed: 'completed',
};

export const FABRIC_HEALTH: States = {
  healthy: 'healthy',
  unhealthy: 'unhealthy',
  'limited capacity': 'limited_capacity',
};

/** Drivers of the 570 and 580 branches print short and long forms. */
export const RECOVERY_ACTIONS: States = {
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
};

/** Every state once, in the order of the table. */
export function statesOf(table: States): readonly string[] {
  return [...new Set(Object.values(table))];
}

/** Undefined for what is no word, or one that nobody knows. */
export function stateOf(table: States, cell: Cell): string | undefined {
  const spelling = cell.kind === 'text' ? cell.value.toLowerCase() : '';
  return Object.hasOwn(table, spelling) ? table[spelling] : undefined;
}
