import { UserError } from '../errors.ts';

/** What an error comes to: words for stderr and the exit status. What the user can mend is one sentence with its remedy; all else is a bug. */
export function faultOf(error: unknown, args: readonly string[]): { readonly text: string; readonly status: number } {
  const fault = isShortage(error) ? new UserError('descriptors-exhausted', { problem: error.message }) : error;
  // Whoever asks for health takes 1 for sick hardware: 2 is "unknown".
  const failed = args.includes('health') ? 2 : 1;
  if (fault instanceof UserError)
    return { text: `device-agent: ${fault.message}\n${fault.remedy}\n`, status: Math.max(fault.exit, failed) };
  const words = fault instanceof Error ? (fault.stack ?? fault.message) : String(fault);
  return { text: `device-agent: this is a bug: ${words}\n`, status: failed };
}

/** Whoever opens files may meet it, the loader of our own code first of all, which puts it into words of its own. */
const isShortage = (error: unknown): error is Error =>
  error instanceof Error &&
  (['EMFILE', 'ENFILE'].includes((error as { readonly code?: string }).code ?? '') || error.message.includes('too many open files'));
