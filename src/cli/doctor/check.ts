import type { Configuration } from '../../config/configuration.ts';
import type { DeviceFamily } from '../../probes/family.ts';

/** Outcome of one check. `skipped`: nothing to judge, for instance because the part is turned off. */
export interface CheckResult {
  /** kebab-case, stable: for programs. */
  readonly name: string;
  readonly status: 'ok' | 'finding' | 'skipped';
  /** What was found, with path or figure. */
  readonly detail: string;
  /** For findings: what it leads to or comes from. */
  readonly cause?: string;
  /** For findings: what to do. */
  readonly remedy?: string;
}

/** What checks look at. */
export interface CheckContext {
  readonly configuration: Configuration;
  readonly families: readonly DeviceFamily[];
  /** To be called when a thread could not be ended. */
  stuck(): void;
}

/** Looks at one thing, may tell several results; throws only for a bug. */
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
