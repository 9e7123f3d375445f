import type { ProblemSpec } from '../../model/collection.ts';
import { seconds } from '../../model/duration.ts';
import {
  booleanOption,
  constant,
  durationOption,
  type OptionSpecs,
  type OptionValues,
  pacedOption,
  stringOption,
} from '../../model/options.ts';
import { classProblem } from '../kit/device-files.ts';

export const options = {
  all: booleanOption(
    false,
    'Report every network function of the machine, not only those that SR-IOV or a DPDK driver uses: for physical functions that a plugin allocates undivided',
  ),
  'rdma-functions': booleanOption(
    false,
    'Report functions that have an RDMA device too. Set it only when the infiniband probe is off or leaves these devices out: otherwise two families report one function, and the agent cannot know which of them a pod holds',
  ),
  source: stringOption(
    'auto',
    'Where the counters and settings of virtual functions come from: netlink, the command ip, or only the files of the driver; auto tries netlink, then ip',
    ['auto', 'netlink', 'ip', 'sysfs'],
  ),
  'ip-path': stringOption('ip', 'Path of the command ip; a name without a path is searched in the usual directories'),
  'ip-timeout': constant(durationOption(seconds(5), 'Time after which the command ip is stopped')),
  /** Drivers, interfaces, timeouts. */
  'facts-interval': pacedOption('refresh.facts', seconds(60)),
} as const satisfies OptionSpecs;

export type NetdevOptions = OptionValues<typeof options>;

export const problems = [
  classProblem(
    'The directory of PCI functions, or the class of a function, cannot be read. Network functions may therefore be unknown.',
    '/sys/bus/pci/devices',
  ),
  {
    code: 'other-network-namespace',
    meaning:
      'The agent sees an interface in sysfs and not in its own network namespace. The counters and settings that the kernel keeps for virtual functions are unknown.',
    remedy:
      "Run the agent in the host's network namespace: hostNetwork: true in the values of the chart. Or set the option source to sysfs: then only the files of the drivers are read.",
  },
  {
    code: 'netlink-unusable',
    meaning: 'The agent cannot query the kernel by netlink, so the counters and settings of virtual functions are unknown.',
    remedy: 'Allow sockets of the family AF_NETLINK in the seccomp profile of the agent, or set the option source to ip.',
  },
  {
    code: 'ip-unusable',
    meaning: 'The command ip does not run or prints no link, so the counters and settings of virtual functions are unknown.',
    remedy: 'Install iproute2 beside the agent and name the command in the option ip-path, or set the option source to sysfs.',
  },
  {
    code: 'answer-too-large',
    meaning: 'A physical function has so many virtual functions that the kernel cannot list them in one message.',
    remedy: 'Create fewer virtual functions, or use a driver that has the counters in sysfs.',
  },
  {
    code: 'link-unreadable',
    meaning: 'The files of an interface hold no link state, so the state of its port is unknown.',
    remedy: 'Read carrier and flags of the interface in /sys/class/net manually. Search the kernel log for messages of its driver.',
  },
  {
    code: 'interface-hangs',
    meaning: 'A read of the interface did not return, most often because its driver waits for the firmware. The agent stops reading it.',
    remedy: 'Search the kernel log for command timeouts of the driver and reset the adapter, or the node.',
  },
] as const satisfies readonly ProblemSpec[];

export type ProblemCode = (typeof problems)[number]['code'];
