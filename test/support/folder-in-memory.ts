import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A temporary folder in memory where that is possible: to write thousands of files to a disk, or to sync them, takes most of the time of a test. */
export const folderInMemory = (name: string): string => mkdtempSync(join(process.env.TEST_MEMORY ?? tmpdir(), name));
