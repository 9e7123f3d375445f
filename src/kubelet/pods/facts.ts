import type { ContainerStatus, ListPodsResponse, Pod } from '../../generated/pods/v1alpha1/api.ts';
import { type ExtendedClaim, type PodFacts, type PodFactsByName, podName } from '../../model/pod-facts.ts';

/** Phases of pods that hold nothing any more. The Pods API lists them; `List` does not. */
const ENDED: ReadonlySet<string> = new Set(['Succeeded', 'Failed']);

/**
 * Reads a `ListPods` answer. PodResources names pods without UID, so two live pods of one name cannot be told apart: such a name gets no
 * facts instead of those of the wrong pod.
 */
export function podFactsFrom({ pods }: ListPodsResponse): PodFactsByName {
  const facts = new Map<string, PodFacts>();
  const ambiguous = new Set<string>();
  for (const pod of pods) {
    const one = factsOf(pod);
    if (one === undefined || ENDED.has(one.phase)) continue;
    const name = podName(one);
    if (facts.has(name)) ambiguous.add(name);
    else facts.set(name, one);
  }
  for (const name of ambiguous) facts.delete(name);
  return facts;
}

function factsOf({ metadata, status }: Pod): PodFacts | undefined {
  const { name: pod = '', namespace = '', uid = '' } = metadata ?? {};
  if (pod === '' || uid === '') return undefined;
  const extended = extendedOf(status);
  return {
    namespace,
    pod,
    uid,
    phase: status?.phase ?? '',
    containers: [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].flatMap(created),
    ...(extended === undefined ? {} : { extended }),
  };
}

function created({ name, containerId }: ContainerStatus): PodFacts['containers'] {
  const id = containerId.replace(/^[a-z0-9-]+:\/\//, '');
  return id === '' ? [] : [{ name, id }];
}

function extendedOf(status: Pod['status']): ExtendedClaim | undefined {
  const { resourceClaimName: claim = '', requestMappings = [] } = status?.extendedResourceClaimStatus ?? {};
  const resources = [...new Set(requestMappings.map(({ resourceName }) => resourceName))].filter((name) => name !== '').sort();
  return claim === '' || resources.length === 0 ? undefined : { claim, resources };
}
