import type { Logger } from '../log/logger.ts';

export interface KeptPlace {
  /** Path of the file in use. */
  readonly to: string;
  readonly what: 'health' | 'usage';
  /** Devices that were unhealthy in it. */
  readonly unhealthy?: readonly string[];
}

/**
 * Tells of a file that an older agent set aside and that this agent could use. It is not put back by itself: what that agent saw since, such
 * as a reset, is in the file in use, and nothing tells which of the two is true of a condition.
 */
export function tellKept(logger: Logger, kept: string, { to, what, unhealthy = [] }: KeptPlace): void {
  const devices = unhealthy.length === 0 ? {} : { unhealthy };
  const remedy = `To have it again in place of what is known since, stop the agent, move ${kept} to ${to} and start the agent; else remove it.`;
  logger.warn(`an older agent kept the ${what} state of before, and it is not used`, { path: kept, ...devices, remedy });
}
