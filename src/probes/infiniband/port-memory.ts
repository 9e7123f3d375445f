import type { PortLevel } from './port.ts';

/** What is remembered of a port between reads, also across a reset of its device. */
export interface PortMemory {
  /** A port that was never up is not cabled, which is no fault. */
  readonly wasEverActive: boolean;
  readonly isActive: boolean;
  /** How often it was seen to go from up to down. */
  readonly losses: number;
}

export const NEW_PORT: PortMemory = { wasEverActive: false, isActive: false, losses: 0 };

/** The memory after one more look at the port. A look that told nothing changes nothing. */
export function remember(memory: PortMemory, level: PortLevel): PortMemory {
  if (level.state === undefined) return memory;
  const isActive = level.state === 'active' || level.state === 'active_defer';
  return {
    wasEverActive: memory.wasEverActive || isActive,
    isActive,
    losses: memory.losses + (memory.isActive && !isActive ? 1 : 0),
  };
}
