import type { ProblemSpec } from '../../model/collection.ts';
import { seconds } from '../../model/duration.ts';
import { matchesAny } from '../../model/excluded.ts';
import { booleanOption, excludeOption, listOption, type OptionValues, pacedOption } from '../../model/options.ts';
import { classProblem } from '../kit/device-files.ts';

export const options = {
  exclude: excludeOption,
  'hw-counters': booleanOption(true, 'Read the counters of the hw_counters directories, of ports and devices'),
  /** Firmware version, GUIDs, interfaces. */
  'facts-interval': pacedOption('refresh.facts', seconds(60)),
  'expected-ports': listOption(
    [],
    'Ports that must be up from the start, as device:port with * for any characters; other ports count as down only after they were up',
  ),
};

export type InfinibandOptions = OptionValues<typeof options>;

/** Tells whether the probe may access a device. It uses only the name, so the probe never follows a link of an excluded device. */
export type NameFilter = (name: string) => boolean;

export const nameFilter =
  ({ exclude }: InfinibandOptions): NameFilter =>
  (name) =>
    !matchesAny(exclude, name);

/** Tells whether the options list `device:port` as a port that must be up. */
export function isExpectedPort(values: InfinibandOptions, device: string, port: string): boolean {
  return matchesAny(values['expected-ports'], `${device}:${port}`);
}

export const problems = [
  classProblem(
    'The directory of RDMA devices exists but cannot be listed, so the agent knows nothing about them.',
    '/sys/class/infiniband',
  ),
  {
    code: 'counters-hidden',
    meaning: 'No device shows counters: the agent sees only the reduced view that the kernel gives to other network namespaces.',
    remedy: "Mount the host's /sys into the agent and point --path.sysfs at it, or run the agent with hostNetwork.",
  },
  {
    code: 'nodes-hidden',
    meaning:
      'The agent does not see /dev/infiniband of the host. A missing character device is not noticed, and containers do not get rdma_cm from the device plugin.',
    remedy:
      "If dev.enabled in the values of the chart is off, turn it on; without the chart, mount the host's /dev and point --path.dev at it. If the agent sees that directory already, the node has no /dev/infiniband: load the module ib_uverbs.",
  },
  {
    code: 'no-counters',
    meaning: 'An adapter has no RDMA counters: its driver or its firmware gives none. Traffic and errors of its ports are unknown.',
    remedy: 'Update firmware and kernel; ionic (AMD Pensando and Pollara) has counters since Linux 6.18. The state of the ports is known.',
  },
  {
    code: 'device-vanished',
    meaning: 'A device was listed but disappeared before it was read, as during a driver reload, a reset or a hot removal.',
    remedy: 'If the device does not return by itself, search the kernel log for the driver and the PCI function.',
  },
  {
    code: 'state-unreadable',
    meaning: 'The state file of a port holds text that is not a known port state, so the state of the link is unknown.',
    remedy: 'Read the file manually and reload the driver. If the kernel is newer than this agent, report the text.',
  },
  {
    code: 'counter-all-ones',
    meaning: 'A counter of 64 bits is all ones, which is what a read gives that the hardware did not answer. The counter is left out.',
    remedy: 'Search the kernel log for messages of the driver. If the counter stays so, update the firmware or reset the device.',
  },
  {
    code: 'device-hangs',
    meaning: 'A read of the device did not return, most often because its firmware does not answer. The agent stops reading the device.',
    remedy: 'Search the kernel log for command timeouts of the driver and reset the device, or the node.',
  },
] as const satisfies readonly ProblemSpec[];

export type ProblemCode = (typeof problems)[number]['code'];
