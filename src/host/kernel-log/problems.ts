import type { Problem, ProblemSpec } from '../../model/collection.ts';

/** What can keep the kernel log from being read. A family that reads it adds these to its own. */
export const kmsgProblems = [
  {
    code: 'kmsg-missing',
    meaning: 'There is no kernel log at the configured path, so errors that the driver only logs are not seen.',
    remedy: "Mount the host's /dev/kmsg read-only into the agent, or name the right path.",
  },
  {
    code: 'kmsg-denied',
    meaning: 'The kernel log may not be read, so errors that the driver only logs are not seen.',
    remedy: 'Give the agent access to the device /dev/kmsg and, where kernel.dmesg_restrict is 1, the capability SYSLOG.',
  },
  {
    code: 'kmsg-not-a-log',
    meaning: 'The configured path is neither the kernel log nor an ordinary file.',
    remedy: 'Name /dev/kmsg of the host. Some container runtimes put a terminal or an empty directory in its place.',
  },
  {
    code: 'kmsg-failed',
    meaning: 'Reading the kernel log failed.',
    remedy: 'The agent tries again by itself; when it goes on, read the log with dmesg on the node and look for errors of its storage.',
  },
  {
    code: 'kmsg-malformed',
    meaning: 'Nothing in the file given as kernel log has the format of /dev/kmsg.',
    remedy: 'Name a file of /dev/kmsg records (priority,sequence,microseconds,flags;text); output of dmesg or a syslog file is none.',
  },
] as const satisfies readonly ProblemSpec[];

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

const WORDS: Readonly<Record<string, string>> = {
  EISDIR: 'is a directory',
  ENOTKMSG: 'is a device, pipe or socket other than the kernel log',
};

/** The problem that an errno name stands for. `ENOTKMSG` is ours: something else than log or file is there. */
export function kmsgProblem(path: string, errno: string): Problem {
  return { code: CODES[errno] ?? 'kmsg-failed', message: `${path} ${WORDS[errno] ?? `cannot be read: ${errno}`}` };
}
