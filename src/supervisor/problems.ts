import type { ProblemSpec } from '../model/collection.ts';

/** Problems that the supervisor finds; any family can have them. */
export const supervisorProblems: readonly ProblemSpec[] = [
  {
    code: 'probe-hung',
    meaning:
      'A read did not return within a second, or a call within 1.5 s; in a reader of its own a call has `--refresh.timeout`. The agent killed the reader, and its successor leaves the device out. The device is tried again after 10 s, later once a minute.',
    remedy: 'Search the kernel log for firmware or driver timeouts of the device at that path, then reset the device or reboot.',
  },
  {
    code: 'reader-stuck',
    meaning:
      'A reader of a hanging device sleeps in the kernel and cannot be ended. With eight of them, a family that has one is read no more until one ends.',
    remedy: 'Search the kernel log for tasks that are blocked, then reset the device or reboot. The readers end when the device answers.',
  },
  {
    code: 'reader-ended',
    meaning:
      'The process that reads the devices ended: a library of the vendor crashed, or somebody killed it. A call that ended it is left out, and is tried again after 10 s, later once a minute.',
    remedy:
      'Update the library that the message names, or report the crash to its vendor. After SIGKILL, search the kernel log for the OOM killer.',
  },
  {
    code: 'probe-crashed',
    meaning: 'The probe ended with an internal error. It is restarted at each refresh.',
    remedy: 'This is a bug: report the stack trace from the log.',
  },
  {
    code: 'reader-refused',
    meaning: 'The system refused a process for the reader, so the probe did not run. The agent tries again at each refresh.',
    remedy: 'Raise the process limit (pids) of the container, or find out what uses up the processes of the node.',
  },
  {
    code: 'nothing-shown',
    meaning: 'The machine shows no trace of a family that had devices: no class directory and no driver. The devices may still be present.',
    remedy: 'Load the driver of the devices. If the devices were removed, the agent forgets them at the next boot of the machine.',
  },
  {
    code: 'expected-missing',
    meaning:
      'The family has fewer devices than `expect` of the configuration says. Parts such as instances and virtual functions do not count.',
    remedy: 'Search `lspci` and the kernel log for the device. Correct `expect` if the node has fewer devices.',
  },
  {
    code: 'same-identity',
    meaning: 'Several devices report the same serial number, UUID or GUID. A fault of one of them counts for all of them.',
    remedy:
      'Ask the maker for another number, or find out why one device is shown twice, such as a drive with two paths without multipath.',
  },
  {
    code: 'sysfs-unusable',
    meaning: 'There is no sysfs at --path.sysfs, so the agent finds no device.',
    remedy: "Mount the host's /sys read-only into the agent, and set --path.sysfs to that mount.",
  },
  {
    code: 'descriptors-exhausted',
    meaning: 'The process or the machine has no file descriptor left, so some files were not opened. Their values are absent until then.',
    remedy:
      'Raise the open file limit of the container (at least 256 plus 60 per port of a fabric adapter), or raise fs.file-max of the node.',
  },
  {
    code: 'name-conflict',
    meaning:
      'A device has a name that a device of another family has too. A family in code keeps it before a shipped declaration, and that before a declared one. Between equals, neither device gets the holders of the name.',
    remedy:
      'Declare another id or alias, or leave the device out of one family with `device.exclude`. docs/declare-a-family.md has the order.',
  },
  {
    code: 'too-many-entries',
    meaning: 'The family reports more devices, readings, findings or processes than the agent holds. The message says what was left out.',
    remedy: 'Check whether the machine has that many devices. If a program creates processes on a GPU without end, stop it.',
  },
];
