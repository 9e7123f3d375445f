import type { ProblemSpec } from '../../model/collection.ts';

export const problems = [
  {
    code: 'class-unreadable',
    meaning: 'The directory of RDMA devices exists and cannot be listed, so nothing is known about any of them.',
    remedy: "Mount the host's /sys read-only into the agent and let it read /sys/class/infiniband.",
  },
  {
    code: 'counters-hidden',
    meaning: 'No device shows counters: the agent sees the reduced view that the kernel gives to other network namespaces.',
    remedy: "Mount the host's /sys into the agent and point --path.sysfs at it, or run the agent with hostNetwork.",
  },
  {
    code: 'device-vanished',
    meaning: 'A device is listed and was gone when it was to be read, as in a driver reload, a reset or a hot removal.',
    remedy: 'Nothing when it comes back by itself; otherwise look for the driver and the PCI function in the kernel log.',
  },
  {
    code: 'state-unreadable',
    meaning: 'The state of a port reads as text that is no state of a port, so that it is not known whether the link is up.',
    remedy: 'Read the file by hand; reload the driver. If the kernel is newer than this agent, report the text.',
  },
  {
    code: 'device-hangs',
    meaning: 'A read of the device did not come back, most often because its firmware does not answer; the device is left alone.',
    remedy: 'Look for command timeouts of the driver in the kernel log and reset the device, or the node.',
  },
] as const satisfies readonly ProblemSpec[];

export type ProblemCode = (typeof problems)[number]['code'];
