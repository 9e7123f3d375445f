import { existsSync } from 'node:fs';
import { UserError } from '../errors.ts';
import { visibleLines } from '../model/one-line.ts';

/** Converts an error to a text for stderr and an exit status. A user error is one sentence with a remedy; any other error is a bug. */
export function errorToExit(error: unknown, args: readonly string[]): { readonly text: string; readonly status: number } {
  const fault = isShortage(error) ? new UserError('descriptors-exhausted', { problem: error.message }) : error;
  // The health command uses 1 only for unhealthy hardware; its status for errors is 2, "unknown".
  const failed = args.includes('health') ? 2 : 1;
  if (fault instanceof UserError)
    return { text: `device-agent: ${fault.message}\n${fault.remedy}\n`, status: Math.max(fault.exit, failed) };
  const text = fault instanceof Error ? (fault.stack ?? fault.message) : String(fault);
  return { text: visibleLines(`device-agent: this is a bug: ${text}\n`), status: failed };
}

/**
 * Any code that opens files can fail for lack of descriptors. Node's module loader reports it in its own text, without an errno, or says
 * that it does not find a file that is there.
 */
function isShortage(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const { code = '' } = error as { readonly code?: string };
  const [, missing] = /^Cannot find (?:package|module) '([^']+)'/.exec(error.message) ?? [];
  if (code === 'ERR_MODULE_NOT_FOUND' && missing !== undefined && existsSync(missing.replace(/\/index\.js$/, ''))) return true;
  return ['EMFILE', 'ENFILE'].includes(code) || error.message.includes('too many open files');
}
