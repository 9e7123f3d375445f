/** How often a test repeats what chance decides: less often for a developer who waits than where `CI` is set. */
export const repetitions = (local: number, inCi: number): number => (process.env.CI === undefined ? local : inCi);
