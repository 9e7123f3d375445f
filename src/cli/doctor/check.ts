import type { Configuration } from '../../config/configuration.ts';
import type { UserError } from '../../errors.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import type { Ask } from '../agent-api.ts';

/** Result of one check. `skipped` means that there is nothing to check, for example because the part is disabled. */
export interface CheckResult {
  /** Stable kebab-case name for programs. */
  readonly name: string;
  readonly status: 'ok' | 'finding' | 'skipped';
  /** What the check found, with a path or a number. */
  readonly detail: string;
  /** For findings: cause or effect. */
  readonly cause?: string;
  /** For findings: what the user can do. */
  readonly remedy?: string;
}

/** Input of the checks. */
export interface CheckContext {
  readonly configuration: Configuration;
  readonly families: readonly DeviceFamily[];
  /** Asks the running agent; each path once for all checks. */
  readonly ask: Ask;
  /** Why the running agent must not be asked; known after the first question. */
  askProblem(): UserError | undefined;
  /** Reads everything once, for checks that no agent answers. All checks share the result. */
  collect(): Promise<Snapshot>;
}

/** Checks one thing and returns one or more results. Throws only for a bug. */
export type Check = (context: CheckContext) => readonly CheckResult[] | Promise<readonly CheckResult[]>;

export const ok = (name: string, detail: string): CheckResult => ({ name, status: 'ok', detail });
export const skipped = (name: string, detail: string): CheckResult => ({ name, status: 'skipped', detail });
export const finding = (name: string, detail: string, cause: string, remedy: string): CheckResult => ({
  name,
  status: 'finding',
  detail,
  cause,
  remedy,
});
