import { type Millis, millis, seconds } from '../../model/duration.ts';
import { booleanOption, durationOption, expressionOption, listOption, type OptionValues } from '../../model/options.ts';

export const options = {
  'device-include': expressionOption('', 'Regular expression of the RDMA device names to read, anchored at both ends; empty means all'),
  'device-exclude': expressionOption(
    '',
    'Regular expression of the RDMA device names to leave alone, anchored at both ends: no file of theirs is opened',
  ),
  'hw-counters': booleanOption(true, 'Read the counters of the hw_counters directories, of ports and devices'),
  'state-interval': durationOption(millis(0), 'Least time between two reads of the state and the rate of ports; 0 means every refresh'),
  'counter-interval': durationOption(
    millis(0),
    'Least time between two reads of the counters, some of which cost the firmware a command each; 0 means every refresh',
  ),
  'facts-interval': durationOption(seconds(60), 'Time between two reads of what hardly ever changes: firmware version, GUIDs, interfaces'),
  'expected-ports': listOption(
    [],
    'Ports that must be up from the start, as device:port with * for any characters; others count as down only after having been up',
  ),
};

export type InfinibandOptions = OptionValues<typeof options>;

/** Which devices may be touched at all. Judged on the name alone, so that not even a link of an excluded device is followed. */
export type NameFilter = (name: string) => boolean;

export function nameFilter(values: InfinibandOptions): NameFilter {
  const include = anchored(values['device-include']);
  const exclude = anchored(values['device-exclude']);
  return (name) => include?.test(name) !== false && exclude?.test(name) !== true;
}

function anchored(expression: string): RegExp | undefined {
  return expression === '' ? undefined : new RegExp(`^(?:${expression})$`);
}

/** Whether `device:port` is among the ports that must be up. */
export function isExpectedPort(values: InfinibandOptions, device: string, port: string): boolean {
  return values['expected-ports'].some((pattern) => wildcard(pattern).test(`${device}:${port}`));
}

function wildcard(pattern: string): RegExp {
  const escaped = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}$`);
}

/** Refreshes do not come to the millisecond: one that comes this early is on time. */
const EARLY_MS = 50;

/** Whether what was read at one moment is to be read again. */
export function isDue(readAtMs: number, everyMs: Millis, nowMs: number): boolean {
  return nowMs - readAtMs >= everyMs - EARLY_MS;
}
