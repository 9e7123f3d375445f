import type { LedgerInput } from '../../incidents/fault-ledger.ts';
import type { UidOf } from '../../join/processes.ts';
import type { Owners } from '../../join/resolve.ts';
import { wallClockOf } from '../../model/clock-step.ts';
import type { PodFactsByName, PodResources } from '../../model/pod-resources.ts';
import type { Moment } from '../known-devices.ts';

interface FaultFacts extends Pick<LedgerInput, 'devices'> {
  readonly owners: Owners;
  readonly uidOf: UidOf;
  readonly podResources: PodResources;
  readonly pods: PodFactsByName | undefined;
}

/** What the ledger of faults takes of a snapshot. */
export function faultInput({ devices, owners, uidOf, podResources, pods = new Map() }: FaultFacts, now: Moment): LedgerInput {
  const { answeredAtMs, answeredMonotonicMs } = podResources;
  return {
    ...now,
    devices,
    holdersOf: (key) =>
      (owners.holders.get(key) ?? []).map((allocation) => {
        const { namespace, pod, container, resource, deviceId } = allocation;
        return { holder: { namespace, pod, container, resource, deviceId }, uid: uidOf(allocation) };
      }),
    answeredAtMs: answeredAtMs === undefined ? undefined : wallClockOf(answeredAtMs, answeredMonotonicMs, now),
    podOf: (containerId) => [...pods.values()].find(({ containers }) => containers.some(({ id }) => id === containerId))?.uid,
  };
}
