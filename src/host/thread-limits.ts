import type { ResourceLimits } from 'node:worker_threads';

/** Size of V8's space for new objects. One garbage collection moves at most this much. Node allows 16 MiB above the limit until the thread ends. */
const YOUNG_MIB = 8;

/**
 * Limits of a thread, in MiB of long-lived objects. A thread that takes more memory ends, and the process goes on. Since Node 24 the space for
 * new objects is larger by default: one garbage collection can exceed the 16 MiB, and V8 then ends the whole process.
 */
export const threadLimits = (oldMib: number): ResourceLimits => ({ maxOldGenerationSizeMb: oldMib, maxYoungGenerationSizeMb: YOUNG_MIB });
