import { UserError } from '../errors.ts';

/** What an error comes to: words for stderr and the exit status. What the user can mend is one sentence with its remedy; all else is a bug. */
export function faultOf(error: unknown): { readonly text: string; readonly status: number } {
  const fault = isShortage(error) ? new UserError('descriptors-exhausted', { problem: error.message }) : error;
  if (fault instanceof UserError) return { text: `device-agent: ${fault.message}\n${fault.remedy}\n`, status: fault.exit };
  const words = fault instanceof Error ? (fault.stack ?? fault.message) : String(fault);
  return { text: `device-agent: this is a bug: ${words}\n`, status: 1 };
}

/** Whoever opens files may meet it, the loader of our own code first of all. */
const isShortage = (error: unknown): error is Error =>
  error instanceof Error && ['EMFILE', 'ENFILE'].includes((error as { readonly code?: string }).code ?? '');
