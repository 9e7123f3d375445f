import type { ProblemSpec } from '../model/collection.ts';

/** Problems that any family can have, found by its supervisor. */
export const supervisorProblems: readonly ProblemSpec[] = [
  {
    code: 'probe-hung',
    meaning:
      'A read has not come back within a second, or a call within `--refresh.timeout`. The device is left out; the others are read on.',
    remedy: 'Look at the kernel log for firmware or driver time-outs of the path named; a reset of the device or a reboot frees it.',
  },
  {
    code: 'probe-crashed',
    meaning: 'The probe ended with an error of its own. It is started anew at each refresh.',
    remedy: 'This is a bug: report the stack trace from the log.',
  },
  {
    code: 'thread-refused',
    meaning: 'The system gave no thread for the probe, which was not run. It is tried again at each refresh.',
    remedy: 'Raise the limit of processes (pids) of the container, or look for what has used up those of the node.',
  },
  {
    code: 'nothing-shown',
    meaning: 'The machine shows no trace of a family whose devices were there: no class directory, no driver. They may still be there.',
    remedy: 'Load the driver of the devices. If they were taken out for good, the agent forgets them when the machine boots.',
  },
  {
    code: 'sysfs-unusable',
    meaning: 'There is no sysfs where --path.sysfs says, so that nothing is known of any device.',
    remedy: "Mount the host's /sys read-only into the agent, and name the place with --path.sysfs.",
  },
  {
    code: 'descriptors-exhausted',
    meaning: 'Files could not be opened because the process or the machine has no descriptor left. What they say is absent meanwhile.',
    remedy: 'Raise the limit of open files of the container (at least 256 and 60 per InfiniBand port), or fs.file-max of the node.',
  },
];
