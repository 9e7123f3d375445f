import type { Owners } from '../../join/resolve.ts';
import { deviceKey } from '../../model/device.ts';
import type { DeviceRecord, RecordsByKey } from '../../model/device-record.ts';
import type { PodResources } from '../../model/pod-resources.ts';
import type { PartKinds } from '../known-devices.ts';

/** The longest time between the end of a part and the end of its holder in the kubelet's list. */
const ENDING_MS = 5_000;

/**
 * Drops the parts that ended with their holder. As long as a holder is listed, a part that is gone is missing. The kubelet lists a holder for a
 * moment after the driver has destroyed its part. Until the kubelet has answered late enough, the part counts as unread in `listed`, which is
 * sorted by key.
 */
export function withoutEnded(
  before: RecordsByKey,
  holders: Owners['holders'],
  { answeredMonotonicMs = 0 }: PodResources,
  passingKinds?: PartKinds,
): { readonly known: RecordsByKey; readonly listed: readonly DeviceRecord[] } {
  const isPassing = ({ device, missingSinceMs }: DeviceRecord): boolean =>
    missingSinceMs !== undefined && passingKinds?.get(device.family)?.includes(device.kind) === true;
  const isWholeRead = ({ device: { family, parent } }: DeviceRecord): boolean => {
    const whole = parent === undefined ? undefined : before.get(deviceKey({ family, id: parent }));
    return whole !== undefined && whole.missingSinceMs === undefined && !whole.isUnread;
  };
  const gone = [...before.values()].filter((record) => isPassing(record) && isWholeRead(record));
  const ended = new Set(gone.filter(({ key }) => !holders.has(key)));
  const known = gone.length === 0 ? before : new Map([...before].filter(([, record]) => !ended.has(record)));
  const undecided = new Set(gone.filter(({ missingFromMs = 0 }) => answeredMonotonicMs < missingFromMs + ENDING_MS));
  const listed = [...known.values()].map((record) => {
    if (!undecided.has(record)) return record;
    const { missingSinceMs, missingFromMs, ...present } = record;
    return { ...present, isUnread: true };
  });
  const isInOrder = listed.every(({ key }, at) => at === 0 || (listed[at - 1] as DeviceRecord).key < key);
  return { known, listed: isInOrder ? listed : listed.sort((a, b) => (a.key < b.key ? -1 : 1)) };
}
