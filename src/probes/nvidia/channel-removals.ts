import type { XidLine } from './xid-line.ts';
import { xidRow } from './xid-table.ts';

/**
 * Xid of removed channels. The driver logs it for each channel of a program, either because the program ended, or because another error
 * ended the program. In the second case the other error is the fault, and this Xid is only its consequence.
 */
export const CHANNELS_REMOVED = 45;

/** A program may take this long to end after the error that another line reports. */
const AFTER_CAUSE_MS = 60_000;
/** The driver may log the removal this long before the error. A removal without a cause is reported only after this time. */
export const BEFORE_CAUSE_MS = 5_000;
/** A removal is reported for this time, so that at least one read sees it. */
const REPORTED_MS = 60_000;
/** Limit for the causes and for the removals that are remembered of one GPU. */
const MAX_REMEMBERED = 64;

/** Place and time of a line. `atMs` is on the kernel's own clock, which is the same for lines from before and after a restart of the agent. */
interface Place {
  readonly atMs: number;
  readonly pid?: number | undefined;
  readonly gpuInstance?: number | undefined;
}

/** An error that may remove channels. */
interface Cause extends Place {
  /** The error of a program removes only channels of that program. Any other error may remove those of all programs. */
  readonly isOfProgram: boolean;
}

/** A removal that no error explains so far. */
interface Removal extends Place {
  /** Wall clock; absent when unknown. */
  readonly timeMs?: number | undefined;
  readonly line: XidLine;
}

/** Latest errors of one GPU, and the removals of the last minute that they do not explain. Immutable plain data. */
export interface Removals {
  readonly causes: readonly Cause[];
  readonly alone: readonly Removal[];
}

export const NO_REMOVALS: Removals = { causes: [], alone: [] };

/** Returns the memory after one more Xid. */
export function rememberRemoval(before: Removals, line: XidLine, atMs: number, timeMs: number | undefined): Removals {
  const place = { atMs, pid: line.pid, gpuInstance: line.gpuInstance };
  if (line.xid !== CHANNELS_REMOVED) {
    const kind = xidRow(line.xid)?.class;
    const isReport = kind === 'Information' && line.xid !== 154;
    return isReport ? before : rememberCause(before, { ...place, isOfProgram: kind === 'Application' });
  }
  if (line.causedBy !== undefined || before.causes.some((cause) => explains(cause, place))) return before;
  const recent = before.alone.filter((removal) => atMs - removal.atMs <= REPORTED_MS + BEFORE_CAUSE_MS);
  // The oldest ones stay, because a newer one may still get a cause.
  return { ...before, alone: [...recent, { ...place, timeMs, line }].slice(0, MAX_REMEMBERED) };
}

/** Returns the memory after an error: removals of the last seconds now have a cause. */
export function rememberCause({ causes, alone }: Removals, cause: Cause): Removals {
  const others = causes.filter((other) => !isReplacedBy(other, cause));
  return { causes: [...others, cause].slice(-MAX_REMEMBERED), alone: alone.filter((removal) => !explains(cause, removal)) };
}

/** Lines come in the order of their time, so an earlier error with the same reach, or one that is too old, explains nothing more. */
function isReplacedBy(before: Cause, after: Cause): boolean {
  if (after.atMs - before.atMs > AFTER_CAUSE_MS) return true;
  return before.isOfProgram === after.isOfProgram && before.pid === after.pid && before.gpuInstance === after.gpuInstance;
}

function explains(cause: Cause, removal: Place): boolean {
  const laterMs = removal.atMs - cause.atMs;
  if (laterMs < -BEFORE_CAUSE_MS || laterMs > AFTER_CAUSE_MS) return false;
  if (!mayBeSame(cause.gpuInstance, removal.gpuInstance)) return false;
  return !cause.isOfProgram || mayBeSame(cause.pid, removal.pid);
}

const mayBeSame = (a: number | undefined, b: number | undefined): boolean => a === undefined || b === undefined || a === b;

/** Returns the latest removal that is to be reported: no error has explained it, and none can any more. */
export function removalToReport({ alone }: Removals, isWanted: (removal: Removal) => boolean, nowMs: number): Removal | undefined {
  return alone.findLast((removal) => {
    const { timeMs } = removal;
    const ageMs = timeMs === undefined ? Number.NaN : nowMs - timeMs;
    return ageMs >= BEFORE_CAUSE_MS && ageMs < REPORTED_MS + BEFORE_CAUSE_MS && isWanted(removal);
  });
}
