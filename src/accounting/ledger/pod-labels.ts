import { type PodFacts, podName } from '../../model/pod-resources.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { ContainerUsage } from '../../model/usage.ts';
import { containerKey } from './entry.ts';

type Labels = Readonly<Record<string, string>>;

/**
 * Labels of the pods of all accounts. The kubelet forgets a pod before its last entry is written, so this keeps them as long as a snapshot
 * has the account.
 */
export class PodLabels {
  #byAccount: ReadonlyMap<string, Labels> = new Map();

  /** Must be called with each snapshot. */
  update({ usage, pods }: Pick<Snapshot, 'usage' | 'pods'>): void {
    if (this.#byAccount.size === 0 && pods === undefined) return;
    const labels = new Map<string, Labels>();
    for (const account of usage?.containers ?? []) {
      const key = containerKey(account);
      const one = currentLabels(account, pods?.get(podName(account))) ?? this.#byAccount.get(key);
      if (one !== undefined) labels.set(key, one);
    }
    this.#byAccount = labels;
  }

  of(account: ContainerUsage): Labels | undefined {
    return this.#byAccount.get(containerKey(account)) ?? account.labels;
  }
}

/** A successor of the same name has another UID. An ended account has the labels of its own pod already. */
function currentLabels(account: ContainerUsage, pod: PodFacts | undefined): Labels | undefined {
  if (account.endedAtMs !== undefined) return undefined;
  return account.uid === undefined || account.uid === pod?.uid ? pod?.labels : undefined;
}
