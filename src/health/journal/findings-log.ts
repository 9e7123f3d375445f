import { dirname, join } from 'node:path';
import type { Clock } from '../../host/clock.ts';
import { createLineLog, type LineLog } from '../../host/fs/line-log.ts';
import { hours } from '../../model/duration.ts';
import { FINDINGS } from './findings-record.ts';

export interface FindingsLogOptions {
  /** The state file. The journal is in the directory `findings` beside it. */
  readonly stateFile: string;
  readonly keepDays: number;
  readonly keepMib: number;
  readonly clock: Clock;
}

/** The files of the journal of findings. */
export function createFindingsLog({ stateFile, keepDays, keepMib, clock }: FindingsLogOptions): LineLog {
  return createLineLog({
    directory: findingsDirectory(stateFile),
    ...FINDINGS,
    keepMs: keepDays * hours(24),
    maxBytes: keepMib * 1024 * 1024,
    clock,
  });
}

export const findingsDirectory = (stateFile: string): string => join(dirname(stateFile), 'findings');
