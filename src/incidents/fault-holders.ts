import type { DeviceProcess } from '../model/collection.ts';
import { defined } from '../model/defined.ts';
import type { EventHolder, FaultBlame } from '../model/events.ts';
import type { Fault, FaultHolder } from '../model/fault.ts';

/** A holder is remembered so long after its end. */
export const REMEMBERED_MS = 600_000;
const MOST_ENDED = 64;

/** A holder in one answer of the kubelet. */
export interface PresentHolder {
  readonly holder: EventHolder;
  readonly uid: string | undefined;
}

/** The holders after one answer of the kubelet. `beforeMs`: the time of the answer before it; absent for the first one. */
export function holdersAfter(
  known: readonly FaultHolder[],
  present: readonly PresentHolder[],
  nowMs: number,
  beforeMs = nowMs,
): readonly FaultHolder[] {
  const names = new Map(present.map((one) => [nameOf(one.holder), one]));
  const isSame = (span: FaultHolder): boolean => {
    const now = names.get(nameOf(span.holder));
    return now !== undefined && (now.uid === undefined || span.uid === undefined || now.uid === span.uid);
  };
  const open = known.filter(({ untilMs }) => untilMs === undefined);
  if (open.length === known.length && open.length === names.size && open.every((span) => isSame(span) && span.uid !== undefined))
    return known;
  const held = new Set(open.filter(isSame).map(({ holder }) => nameOf(holder)));
  const ended = known.flatMap((span): FaultHolder[] => {
    if (span.untilMs === undefined) return isSame(span) ? [] : [{ ...span, untilMs: nowMs }];
    return Math.abs(nowMs - span.untilMs) <= REMEMBERED_MS ? [span] : [];
  });
  const going = open.filter(isSame).map((span): FaultHolder => {
    const uid = span.uid ?? names.get(nameOf(span.holder))?.uid;
    return uid === undefined || uid === span.uid ? span : { ...span, uid };
  });
  const begun = present
    .filter(({ holder }) => !held.has(nameOf(holder)))
    .map(({ holder, uid }): FaultHolder => ({ holder, fromMs: beforeMs, ...defined({ uid }) }));
  const after = [...ended.slice(-MOST_ENDED), ...going, ...begun];
  return after.length === known.length && after.every((span, at) => span === known[at]) ? known : after;
}

/** One name for each container and pod UID. */
const nameOf = ({ namespace, pod, container }: EventHolder): string => `${namespace}/${pod}/${container}`;

export interface Blamed {
  readonly blame: FaultBlame;
  readonly holders: readonly FaultHolder[];
  /** Id of the container of the process; undefined when it is not known. */
  readonly containerId?: string | undefined;
}

/** What is known of processes and pods. */
export interface ProcessFacts {
  /** A process that the latest reads of the device showed. */
  processOf(pid: number): DeviceProcess | undefined;
  /** UID of the pod with a container; undefined when it is not known. */
  podOf(containerId: string): string | undefined;
}

/** Finds whom a fault hit: the pod of its process, otherwise whoever held the device at that time. */
export function blamed(fault: Fault, spans: readonly FaultHolder[], atMs: number, facts: ProcessFacts): Blamed {
  const held = spans.filter(({ fromMs, untilMs = Number.POSITIVE_INFINITY }) => fromMs <= atMs && atMs <= untilMs);
  const { process, isAnyProcess } = fault;
  if (process === undefined || isAnyProcess === true) return ofAll(held);
  const seen = facts.processOf(process.pid);
  const containerId = process.containerId ?? seen?.containerId;
  const uid = process.podUid ?? seen?.podUid ?? (containerId === undefined ? undefined : facts.podOf(containerId));
  if (uid === undefined) {
    // A process that the agent saw in no container is one of the host.
    const isOfHost = seen?.name !== undefined && containerId === undefined;
    return isOfHost ? { blame: 'outside', holders: [] } : ofAll(held);
  }
  const own = spans.filter((span) => span.uid === uid);
  if (own.length > 0) return { blame: 'process', holders: own, containerId };
  const unnamed = held.filter((span) => span.uid === undefined);
  return unnamed.length === 0 ? { blame: 'outside', holders: [] } : ofAll(unnamed);
}

function ofAll(holders: readonly FaultHolder[]): Blamed {
  if (holders.length === 0) return { blame: 'unknown', holders };
  return { blame: holders.length === 1 ? 'only' : 'one-of', holders };
}

/** For a message: `of one of the pods a, b`. Empty when nobody is known. */
export function blameText({ blame, holders }: Blamed): string {
  const pods = [...new Set(holders.map(({ holder: { namespace, pod } }) => `${namespace}/${pod}`))];
  if (blame === 'outside') return 'of a process of no holder';
  if (pods.length === 0) return '';
  const [first = ''] = pods;
  if (blame === 'one-of' && pods.length > 1)
    return `of one of the pods ${pods.slice(0, MOST_NAMED).join(', ')}${pods.length > MOST_NAMED ? ', …' : ''}`;
  return `of the pod ${first}`;
}

const MOST_NAMED = 8;
