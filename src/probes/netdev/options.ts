import { millis, seconds } from '../../model/duration.ts';
import { booleanOption, durationOption, type OptionSpecs, type OptionValues, stringOption } from '../../model/options.ts';

export const options = {
  all: booleanOption(
    false,
    'Report every network function of the machine, not only those that SR-IOV or a DPDK driver uses: for physical functions that a plugin allocates undivided',
  ),
  'rdma-functions': booleanOption(
    false,
    'Report functions that have an RDMA device too. Set it only when the infiniband probe is off or excludes these devices: otherwise two families report one function, and the agent cannot know which of them a pod holds',
  ),
  source: stringOption(
    'auto',
    'Where the counters and settings of virtual functions come from: netlink, the command ip, or only the files of the driver; auto tries netlink, then ip',
    ['auto', 'netlink', 'ip', 'sysfs'],
  ),
  'ip-path': stringOption('ip', 'Path of the command ip; a name without a path is searched in the usual directories'),
  'ip-timeout': durationOption(seconds(5), 'Time after which the command ip is stopped', 1),
  'counter-interval': durationOption(
    millis(0),
    'Minimum time between two reads of the counters of virtual functions, which cost some adapters one firmware command each; 0 means every refresh',
  ),
  'facts-interval': durationOption(seconds(60), 'Time between two reads of facts that rarely change: drivers, interfaces, timeouts', 1),
} as const satisfies OptionSpecs;

export type NetdevOptions = OptionValues<typeof options>;
