import { TestRunner } from 'vitest';

/** End of the name of a test that is left out where something is missing, so that the run says what. */
export const unless = (isThere: boolean, reason: string): string => (isThere ? '' : ` (skipped: ${reason})`);

/** Leaves out the test that runs, because something is missing. In a hook of a whole group no test runs: there it is an error. */
export function leaveOut(reason: string): never {
  TestRunner.getCurrentTest()?.context.skip(reason);
  throw new Error(reason);
}
