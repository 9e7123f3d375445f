import { createHash } from 'node:crypto';
import { REMEDY_TEXTS } from '../../board/words.ts';
import { holdersHit, type IncidentHolder, type IncidentRecord } from '../../incidents/record.ts';
import { conditionName } from '../../model/condition-text.ts';
import { defined } from '../../model/defined.ts';
import type { HealthState } from '../../model/health.ts';
import { shortened } from '../../model/one-line.ts';

/** An event of core v1, in a form that the API server takes as it is. */
export interface KubernetesEvent {
  readonly apiVersion: 'v1';
  readonly kind: 'Event';
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly involvedObject: object;
  readonly [member: string]: unknown;
}

export const COMPONENT = 'device-agent-publish';
/** Longest message of an event in API servers: 1024 bytes. */
const MESSAGE_BYTES = 1_024;
/** A verdict of an incident that is worth an event: what its events are named by. */
export type EventState = Extract<HealthState, 'unhealthy' | 'unknown'>;
const REASONS: Readonly<Record<EventState, string>> = { unhealthy: 'DeviceUnhealthy', unknown: 'DeviceUnknown' };

/** The worst verdict that an incident had; undefined when it needs no event. `states`: as the list of incidents has them. */
export function eventStateOf([_before, ...states]: readonly string[]): EventState | undefined {
  if (states.includes('unhealthy')) return 'unhealthy';
  return states.includes('unknown') ? 'unknown' : undefined;
}

interface Node {
  readonly name: string;
  /** Absent when the node could not be read. */
  readonly uid?: string | undefined;
}

/** The events of one incident: on the node, and on each pod that held the device. Made again, they have the same names. */
export function eventsOf(record: IncidentRecord, state: EventState, node: Node): readonly KubernetesEvent[] {
  const text = `${record.device.key} ${causeText(record, state)}`;
  const base = { time: record.time, reason: REASONS[state], host: node.name, url: record.url };
  const name = `device-agent.${record.id.toLowerCase().replace(/[^a-z0-9.-]/g, '-')}`;
  const onNode = event(base, `${name}.${digest(node.name, state)}`, 'default', text, {
    apiVersion: 'v1',
    kind: 'Node',
    name: node.name,
    // The kubelet and kubectl use the name of a node as its UID.
    uid: node.uid ?? node.name,
  });
  const onPods = podsOf(record).map((pod) =>
    event(base, `${name}.${digest(pod.pod, pod.uid ?? '', state)}`, pod.namespace, `A device of this pod is ${state}: ${text}`, {
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: pod.namespace,
      name: pod.pod,
      ...defined({ uid: pod.uid }),
    }),
  );
  return [onNode, ...onPods];
}

/** Condition and remedy of the change. The message of the condition is left out: it can name a process of another tenant. */
function causeText({ changes }: IncidentRecord, state: EventState): string {
  const change = changes.find(({ to }) => to === state);
  if (change?.condition === undefined) return `is ${state}`;
  const { condition: type, instance, reason, remedy } = change;
  return `has the condition ${conditionName({ type, instance })} (${reason}). ${REMEDY_TEXTS[remedy] ?? 'No action is needed.'}`;
}

/** Each pod once. */
function podsOf(record: IncidentRecord): readonly IncidentHolder[] {
  return [...new Map(holdersHit(record).map((holder) => [`${holder.namespace}/${holder.pod}/${holder.uid}`, holder])).values()];
}

function event(
  { time, reason, host, url }: { readonly time: string; readonly reason: string; readonly host: string; readonly url: string | undefined },
  name: string,
  namespace: string,
  message: string,
  involvedObject: object,
): KubernetesEvent {
  const at = `${time.slice(0, 19)}Z`;
  const link = url === undefined || url.length > MESSAGE_BYTES / 2 ? '' : ` ${url}`;
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace },
    involvedObject,
    type: 'Warning',
    reason,
    message: shortened(message, MESSAGE_BYTES - link.length) + link,
    source: { component: COMPONENT, host },
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
  };
}

/** Incidents of two nodes can have the same id, and several pods one device. */
const digest = (...parts: readonly string[]): string => createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 12);
