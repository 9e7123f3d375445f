import type { ContainerStatus, ListPodLabelsResponse, ListPodsResponse, Pod } from '../../generated/pods/v1alpha1/api.ts';
import { defined } from '../../model/defined.ts';
import { type ExtendedClaim, type PodFacts, type PodFactsByName, podName } from '../../model/pod-resources.ts';

/** Phases of pods that hold nothing any more. The Pods API lists them; `List` does not. */
const ENDED: ReadonlySet<string> = new Set(['Succeeded', 'Failed']);

/**
 * Reads a `ListPods` answer. PodResources names pods without UID, so two live pods of one name cannot be distinguished: such a name gets no
 * facts instead of those of the wrong pod.
 */
export function podFactsFrom({ pods }: ListPodsResponse, labels: LabelsByUid = new Map()): PodFactsByName {
  const facts = new Map<string, PodFacts>();
  const ambiguous = new Set<string>();
  for (const pod of pods) {
    const one = factsOf(pod, labels);
    if (one === undefined || ENDED.has(one.phase)) continue;
    const name = podName(one);
    if (facts.has(name)) ambiguous.add(name);
    else facts.set(name, one);
  }
  for (const name of ambiguous) facts.delete(name);
  return facts;
}

export type LabelsByUid = ReadonlyMap<string, Readonly<Record<string, string>>>;

/** Longest value of a label in Kubernetes. */
const MAX_VALUE_LENGTH = 63;

/** The named labels of each pod. A longer value is cut. A pod without any of them has no entry. */
export function podLabelsFrom({ pods }: ListPodLabelsResponse, names: readonly string[]): LabelsByUid {
  const byUid = new Map<string, Readonly<Record<string, string>>>();
  for (const { metadata: { uid, labels } = { uid: '', labels: {} } } of pods) {
    const kept = names.flatMap((name): [string, string][] =>
      Object.hasOwn(labels, name) ? [[name, (labels[name] as string).slice(0, MAX_VALUE_LENGTH)]] : [],
    );
    if (kept.length > 0) byUid.set(uid, Object.fromEntries(kept));
  }
  return byUid;
}

function factsOf({ metadata, status }: Pod, labels: LabelsByUid): PodFacts | undefined {
  const { name: pod = '', namespace = '', uid = '' } = metadata ?? {};
  if (pod === '' || uid === '') return undefined;
  const extended = extendedOf(status);
  const kept = labels.get(uid);
  return {
    namespace,
    pod,
    uid,
    phase: status?.phase ?? '',
    containers: [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].flatMap(created),
    ...defined({ labels: kept, extended }),
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
