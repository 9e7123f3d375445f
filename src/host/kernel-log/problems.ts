import type { Problem, ProblemSpec } from '../../model/collection.ts';
import type { HostNeed } from '../../model/declaration.ts';

/** Problems of reading the kernel log. A family that reads the log adds these to its own problems. */
export const kmsgProblems = [
  {
    code: 'kmsg-missing',
    meaning: 'There is no kernel log at the configured path, so the agent misses errors that drivers only log.',
    remedy: "Mount the host's /dev/kmsg read-only into the agent (kmsg.enabled in the values of the chart), or correct the path.",
  },
  {
    code: 'kmsg-denied',
    meaning: 'The agent may not read the kernel log, so it misses errors that drivers only log.',
    remedy:
      'Give the agent access to the device /dev/kmsg (kmsg.enabled in the values of the chart) and, if kernel.dmesg_restrict is 1, the capability SYSLOG.',
  },
  {
    code: 'kmsg-not-a-log',
    meaning: 'The configured path is neither the kernel log nor a regular file.',
    remedy: 'Use /dev/kmsg of the host. Some container runtimes replace it with a terminal or an empty directory.',
  },
  {
    code: 'kmsg-failed',
    meaning: 'Reading the kernel log failed.',
    remedy: 'The agent tries again by itself. If the problem persists, search dmesg on the node for storage errors.',
  },
  {
    code: 'kmsg-malformed',
    meaning: 'The file configured as kernel log contains no record in the format of /dev/kmsg.',
    remedy: 'Use a file of /dev/kmsg records (priority,sequence,microseconds,flags;text). Output of dmesg or a syslog file does not fit.',
  },
] as const satisfies readonly ProblemSpec[];

/** For a family that counts errors by the lines of the log. The log stays readable. */
export const kmsgLost = {
  code: 'kmsg-lost',
  meaning:
    'Records of the kernel log were overwritten before the agent read them, or were too large. What the family counts by the log is a lower bound for that time.',
  remedy:
    'Find in dmesg what floods the log. Give the agent more CPU time where it is throttled, or the kernel a larger log (log_buf_len). The problem ends an hour after the last loss.',
} as const satisfies ProblemSpec;

/** Problems of a family whose conditions or counters follow the log. */
export const logProblems = [...kmsgProblems, kmsgLost] as const;

export type KmsgProblemCode = (typeof kmsgProblems)[number]['code'];

const CODES: Readonly<Record<string, KmsgProblemCode>> = {
  ENOENT: 'kmsg-missing',
  ENOTDIR: 'kmsg-missing',
  ENXIO: 'kmsg-missing',
  ENODEV: 'kmsg-missing',
  EACCES: 'kmsg-denied',
  EPERM: 'kmsg-denied',
  EISDIR: 'kmsg-not-a-log',
  ENOTKMSG: 'kmsg-not-a-log',
};

const TEXTS: Readonly<Record<string, string>> = {
  EISDIR: 'is a directory',
  ENOTKMSG: 'is a device, pipe or socket other than the kernel log',
};

/** The need of a family that reads the log. */
export const kernelLogNeed: HostNeed = {
  check: 'kernel-log',
  part: 'kernel-log',
  problems: kmsgProblems.map(({ code }) => code),
};

/** The problem for an errno name. `ENOTKMSG` is not from the system: the path is neither the log nor a file. */
export function kmsgProblem(path: string, errno: string): Problem {
  return { code: CODES[errno] ?? 'kmsg-failed', message: `${path} ${TEXTS[errno] ?? `cannot be read: ${errno}`}` };
}
