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
