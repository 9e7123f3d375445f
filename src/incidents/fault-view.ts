import { defined } from '../model/defined.ts';
import type { FaultBlame } from '../model/events.ts';
import type { FaultProcess, KeptFault } from '../model/fault.ts';
import type { Remedy, Severity } from '../model/health.ts';

/** A fault in the list of incidents. Times in RFC 3339. */
export interface ListedFault {
  readonly id: string;
  readonly time: string;
  /** Time of the latest repeat; absent when it came once. */
  readonly last?: string;
  readonly count: number;
  /** Key of the device, `family/id`. */
  readonly device: string;
  /** What the family calls it, with its number: `Hang 43`. */
  readonly fault: string;
  readonly severity: Severity;
  readonly remedy: Remedy;
  readonly blame: FaultBlame;
  /** `namespace/pod/container`. */
  readonly holders: readonly string[];
  /** These three can name other pods, so tenants do not get them. */
  readonly message?: string;
  readonly lines?: readonly string[];
  readonly process?: Pick<FaultProcess, 'pid' | 'name'>;
}

/** The newest first. `namespaces`: only what hit pods of these, with nothing of other pods. */
export function listedFaults(kept: readonly KeptFault[], namespaces?: readonly string[]): readonly ListedFault[] {
  return kept.toReversed().flatMap((fault): ListedFault[] => {
    const { id, device, type, code, severity, remedy, blame, count, timeMs, lastMs, message, lines, process } = fault;
    const holders = fault.holders.filter(({ namespace }) => namespaces?.includes(namespace) !== false);
    if (namespaces !== undefined && holders.length === 0) return [];
    return [
      defined({
        id,
        time: new Date(timeMs).toISOString(),
        last: count === 1 ? undefined : new Date(lastMs).toISOString(),
        ...{ count, device, fault: `${type} ${code}`, severity, remedy, blame },
        holders: holders.map(({ namespace, pod, container }) => `${namespace}/${pod}/${container}`),
        ...(namespaces === undefined
          ? { message, lines, process: process === undefined ? undefined : defined({ pid: process.pid, name: process.name }) }
          : {}),
      }),
    ];
  });
}
