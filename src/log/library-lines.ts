import { format } from 'node:util';
import type { Logger } from './logger.ts';

const LONGEST = 500;

/**
 * Libraries and Node itself write their own lines to stderr: gRPC when its environment variables ask for traces, Node for its warnings.
 * From now on they are lines of this log, at level debug.
 */
export function adoptLibraryLines(logger: Logger): void {
  const write = (...words: unknown[]): void => logger.debug('a library wrote a line', { text: format(...words).slice(0, LONGEST) });
  Object.assign(console, { log: write, info: write, warn: write, error: write, debug: write, trace: write });
  // The only listener so far is the one of Node, which prints.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => write(`${name}: ${message}`));
}
