/**
 * What a family needs of the host beyond `/sys` and `/proc`, for some of its checks.
 *
 * `device-nodes`: a listing of the host's `/dev`. `kernel-log`: reads of `/dev/kmsg`. `process-files`: the open files of all processes.
 * `process-ids`: the PID namespace. `network`: the network namespace. `admin-commands`: device nodes that may be opened, and SYS_ADMIN.
 */
export type HostPart = 'device-nodes' | 'kernel-log' | 'process-files' | 'process-ids' | 'network' | 'admin-commands';

/** The value of the chart that gives each part. A test compares it with the pods that the chart makes. */
export const CHART_VALUES: Readonly<Record<HostPart, string>> = {
  'device-nodes': 'dev.enabled',
  'kernel-log': 'kmsg.enabled',
  'process-files': 'processes.enabled',
  'process-ids': 'hostPID',
  network: 'hostNetwork',
  'admin-commands': 'nvme.smart.enabled',
};

/** Declares checks of a family that need a part of the host. */
export interface HostNeed {
  /** kebab-case, closed set: value of the label `check`. */
  readonly check: string;
  readonly part: HostPart;
  /** Codes of problems of the family that say that the part is not given. Empty: no read shows it. */
  readonly problems: readonly string[];
}

/** A check that the agent cannot make, because a part of the host is not given to it. */
export interface DisabledCheck {
  readonly check: string;
  /** Code of the problem that says so. */
  readonly reason: string;
}

/** The checks that the present problems of a family disable. */
export function disabledChecks(needs: readonly HostNeed[], problems: readonly { readonly code: string }[]): readonly DisabledCheck[] {
  const codes = new Set(problems.map(({ code }) => code));
  return needs.flatMap(({ check, problems: own }) => own.filter((code) => codes.has(code)).map((reason) => ({ check, reason })));
}
