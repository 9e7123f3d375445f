import { millis, seconds } from '../../model/duration.ts';
import { booleanOption, durationOption, expressionOption, listOption, type OptionValues } from '../../model/options.ts';

export const options = {
  'device-include': expressionOption('', 'Regular expression of the RDMA device names to read, anchored at both ends; empty means all'),
  'device-exclude': expressionOption(
    '',
    'Regular expression of the RDMA device names to skip, anchored at both ends: the agent opens no file of these devices',
  ),
  'hw-counters': booleanOption(true, 'Read the counters of the hw_counters directories, of ports and devices'),
  'state-interval': durationOption(millis(0), 'Minimum time between two reads of the state and the rate of ports; 0 means every refresh'),
  'counter-interval': durationOption(
    millis(0),
    'Minimum time between two reads of the counters, some of which cost one firmware command each; 0 means every refresh',
  ),
  'facts-interval': durationOption(seconds(60), 'Time between two reads of facts that rarely change: firmware version, GUIDs, interfaces'),
  'expected-ports': listOption(
    [],
    'Ports that must be up from the start, as device:port with * for any characters; other ports count as down only after they were up',
  ),
};

export type InfinibandOptions = OptionValues<typeof options>;

/** Tells whether the probe may access a device. It uses only the name, so the probe never follows a link of an excluded device. */
export type NameFilter = (name: string) => boolean;

export function nameFilter(values: InfinibandOptions): NameFilter {
  const include = anchored(values['device-include']);
  const exclude = anchored(values['device-exclude']);
  return (name) => include?.test(name) !== false && exclude?.test(name) !== true;
}

function anchored(expression: string): RegExp | undefined {
  return expression === '' ? undefined : new RegExp(`^(?:${expression})$`);
}

/** Tells whether the options list `device:port` as a port that must be up. */
export function isExpectedPort(values: InfinibandOptions, device: string, port: string): boolean {
  return values['expected-ports'].some((pattern) => wildcard(pattern).test(`${device}:${port}`));
}

function wildcard(pattern: string): RegExp {
  const escaped = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}$`);
}
