import { seconds } from '../../model/duration.ts';
import { matchesAny } from '../../model/excluded.ts';
import { booleanOption, excludeOption, listOption, type OptionValues, pacedOption } from '../../model/options.ts';

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
