import type { HeldRecord } from '../../model/device-record.ts';
import {
  type ExtendedResource,
  isExtendedClaim,
  type PodFacts,
  type PodFactsByName,
  type PodResources,
  podName,
} from '../../model/pod-resources.ts';

/** Only pods that hold devices: the others are out of scope. */
export function ofHolders(pods: PodFactsByName | undefined, { allocations }: PodResources): PodFactsByName | undefined {
  if (pods === undefined) return undefined;
  const holding = new Set(allocations.map(podName));
  const claims = new Map(
    allocations.flatMap(({ namespace, pod, container, claim }): [string, string][] =>
      claim?.namespace === namespace && isExtendedClaim(pod, claim.name)
        ? [[`${podName({ namespace, pod })}\u0000${container}`, claim.name]]
        : [],
    ),
  );
  return new Map([...pods].flatMap(([name, pod]): [string, PodFacts][] => (holding.has(name) ? [[name, withClaims(pod, claims)]] : [])));
}

/** Names the claim of each extended resource, and leaves out those that a device plugin serves. `claims`: by pod and container. */
function withClaims({ extended: wanted = [], ...pod }: PodFacts, claims: ReadonlyMap<string, string>): PodFacts {
  const extended = wanted.flatMap((one): ExtendedResource[] => {
    const claim = claims.get(`${podName(pod)}\u0000${one.container}`);
    return claim === undefined ? [] : [{ ...one, claim }];
  });
  return extended.length === 0 ? pod : { ...pod, extended };
}

/** The facts of holders with those of users. */
export function withUsers(
  known: PodFactsByName | undefined,
  pods: PodFactsByName | undefined,
  held: readonly HeldRecord[],
): PodFactsByName | undefined {
  if (known === undefined || pods === undefined) return undefined;
  const uids = new Set(held.flatMap(({ users = [] }) => users.map(({ uid }) => uid)));
  return uids.size === 0 ? known : new Map([...known, ...[...pods].filter(([, { uid }]) => uids.has(uid))]);
}
