import type { ResourceLimits } from 'node:worker_threads';

/** Largest generation of new objects. A collection moves at most this much, and Node leaves 16 MiB above the limit to end the thread in. */
const YOUNG_MIB = 8;

/**
 * Limits of a thread that ends alone when it takes more memory. By default the generation of new objects is so large since Node 24 that one
 * collection exceeds what Node leaves above the limit, and V8 then ends the whole process.
 */
export const threadLimits = (oldMib: number): ResourceLimits => ({ maxOldGenerationSizeMb: oldMib, maxYoungGenerationSizeMb: YOUNG_MIB });
