import type { Problem, ProblemSpec } from '../../model/collection.ts';
import type { HostNeed } from '../../model/declaration.ts';

/** Problems of reading the kernel log. A family that reads the log adds these to its own problems. */
export const kmsgProblems = [
  {
    code: 'kmsg-missing',
    meaning: 'There is no kernel log at the configured path, so the agent misses errors that drivers only log.',
    remedy:
      'Run the container that reads the log for the agent (kmsg.enabled in the values of the chart). Without the chart, correct the path, or start "device-agent kernel-log".',
  },
  {
    code: 'kmsg-denied',
    meaning: 'The agent may not read the kernel log, so it misses errors that drivers only log.',
    remedy:
      'Run the container that reads the log for the agent (kmsg.enabled in the values of the chart). A service needs access to the device /dev/kmsg and, if kernel.dmesg_restrict is 1, the capability SYSLOG.',
  },
  {
    code: 'kmsg-not-a-log',
    meaning: 'The configured path is neither the kernel log, nor a regular file, nor the socket of "device-agent kernel-log".',
    remedy: 'Use /dev/kmsg of the host, or that socket. Some container runtimes replace the device with a terminal or an empty directory.',
  },
  {
    code: 'kmsg-failed',
    meaning: 'Reading the kernel log failed.',
    remedy:
      'The agent tries again by itself. If the problem persists, read the log of the container kernel-log, and search dmesg on the node for storage errors.',
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
    'Records of the kernel log were overwritten before the agent read them, or were too large, or were about too many devices. What the family counts by the log is a lower bound for that time.',
  remedy:
    'Find in dmesg what floods the log. Give the agent more CPU time where it is throttled, or the kernel a larger log (log_buf_len). The problem ends an hour after the last loss.',
} as const satisfies ProblemSpec;

export const kmsgForgeable = {
  code: 'kmsg-forgeable',
  meaning:
    'A loaded driver prints any text into the kernel log for a program that holds one of its devices. The agent does not believe lines that name no device and decide a condition. These conditions are unknown, and their counters are absent.',
  remedy: 'None while that driver is loaded. After it was removed, start the agent again.',
} as const satisfies ProblemSpec;

/** Problems of a family whose conditions or counters follow the log. */
export const logProblems = [...kmsgProblems, kmsgLost, kmsgForgeable] as const;

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
  EPROTO: 'kmsg-not-a-log',
};

const TEXTS: Readonly<Record<string, string>> = {
  EISDIR: 'is a directory',
  ENOTKMSG: 'is a device or pipe other than the kernel log',
  EPROTO: 'does not answer as "device-agent kernel-log" does',
  ETIMEDOUT: 'does not answer in time',
  ECONNREFUSED: 'has nobody who answers: "device-agent kernel-log" has ended',
  ECONNRESET: 'was closed by "device-agent kernel-log"',
  ENOSYS: 'is a socket, and the module koffi, which the agent needs for it, does not load',
  ESTALE: 'holds another log than before',
};

/** `isTold`: by the process that reads the log for this one. */
export interface ReadFailure {
  readonly errno: string;
  readonly isTold: boolean;
}

/** The need of a family that reads the log. */
export const kernelLogNeed: HostNeed = {
  check: 'kernel-log',
  part: 'kernel-log',
  problems: kmsgProblems.map(({ code }) => code),
};

/** The problem for an errno name. */
export function kmsgProblem(path: string, { errno, isTold }: ReadFailure): Problem {
  const code = CODES[errno] ?? 'kmsg-failed';
  if (isTold) return { code, message: `"device-agent kernel-log" at ${path} cannot read the log: ${errno}` };
  return { code, message: `${path} ${TEXTS[errno] ?? `cannot be read: ${errno}`}` };
}
