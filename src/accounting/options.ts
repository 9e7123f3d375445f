import { minutes, seconds } from '../model/duration.ts';
import {
  constant,
  durationOption,
  integerOption,
  listOption,
  type OptionSpecs,
  type OptionValues,
  stringOption,
} from '../model/options.ts';

export const usageOptions = {
  /** Each scraper must see the 0 from which the totals grow. */
  'zero-for': constant(durationOption(minutes(1), 'How long the totals of a new container are exported as 0.')),
  linger: constant(durationOption(minutes(3), 'How long the totals of a container that ended are exported; three refreshes at least.')),
  /** An account ends at once when its pod has another UID, or when another container has its device id. */
  'absent-for': constant(
    durationOption(seconds(30), 'How long a container keeps its account of a device while the answers of the kubelet lack it.'),
  ),
  'keep-days': integerOption(30, 'Days for which the ledger keeps what containers used.', 1, 3650),
  'keep-mib': integerOption(32, 'Size of the ledger, in MiB. The oldest entries go first.', 1, 4096),
  currency: stringOption('', 'Currency of `usage.prices`, as reports show it, such as EUR. Empty: none is shown.'),
  labels: listOption([], 'Labels of pods that the ledger keeps, for `usage --by label:NAME`. They come from the Pods API of the kubelet.'),
  'idle-after': durationOption(minutes(30), 'Time without work after which a held device has the condition IdleHeld.'),
  'busy-after': durationOption(minutes(5), 'Time of work without a holder after which a device has the condition BusyWithoutHolder.'),
  'dirty-after': durationOption(seconds(60), 'Time after the last holder ended, after which what it left is the condition DirtyAfterUse.'),
  'dirty-mib': integerOption(256, 'Memory in MiB that no process explains and that counts as left behind.', 1),
  'allowed-processes': listOption(
    ['Xorg', 'Xwayland', 'gnome-shell'],
    'Names of processes that may use a device that they do not hold. The kernel cuts names to 15 characters.',
  ),
  'delegated-holders': listOption(
    ['kai-resource-reservation/*', 'runai-reservation/*'],
    'Pods that hold devices for the pods that use them: `namespace/pod`, or `label=value` by the Pods API of the kubelet; * stands for any characters.',
  ),
  'delegated-ids': listOption(
    ['volcano.sh/*'],
    'Ids that do not tell which device a container uses, because a scheduler chooses it: `resource`, or `resource:id`; * stands for any characters.',
  ),
} as const satisfies OptionSpecs;

interface UsingFamily {
  readonly programs?: readonly string[];
  readonly delegatedIds?: readonly string[];
}

/** The options with the programs and the delegated ids of all families. */
export const usageOptionsFor = (families: readonly UsingFamily[]): typeof usageOptions => {
  const allowed = usageOptions['allowed-processes'];
  const ids = usageOptions['delegated-ids'];
  return {
    ...usageOptions,
    'allowed-processes': { ...allowed, default: [...families.flatMap(({ programs = [] }) => programs), ...allowed.default] },
    'delegated-ids': { ...ids, default: [...families.flatMap(({ delegatedIds = [] }) => delegatedIds), ...ids.default] },
  };
};
export type UsageOptions = OptionValues<typeof usageOptions>;
