/** End of the name of a test that is left out where something is missing, so that the run says what. */
export const unless = (isThere: boolean, reason: string): string => (isThere ? '' : ` (skipped: ${reason})`);
