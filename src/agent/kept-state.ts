import type { Logger } from '../log/logger.ts';

export interface KeptPlace {
  /** Path of the file in use. */
  readonly to: string;
  readonly what: 'health' | 'usage';
  /** Devices that were unhealthy in it. */
  readonly unhealthy?: readonly string[];
}

/**
 * Logs a file that an older agent kept and that this agent could use. The agent does not put it back by itself: the older agent may have seen
 * a reset since then. Only the file in use has that, and nothing shows which of the two files is right about a condition.
 */
export function tellKept(logger: Logger, kept: string, { to, what, unhealthy = [] }: KeptPlace): void {
  const devices = unhealthy.length === 0 ? {} : { unhealthy };
  const remedy = `To have it again in place of what is known since, stop the agent, move ${kept} to ${to} and start the agent; else remove it.`;
  logger.warn(`an older agent kept the ${what} state of before, and it is not used`, { path: kept, ...devices, remedy });
}
