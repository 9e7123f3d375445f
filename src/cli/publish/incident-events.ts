import type { Clock } from '../../host/clock.ts';
import { isRecord, type ListedIncident } from '../../incidents/record.ts';
import type { ChangeLog } from '../../log/changes.ts';
import { hours } from '../../model/duration.ts';
import type { Ask } from '../agent-api.ts';
import { incidentsIn } from '../incident-answer.ts';
import { eventStateOf, eventsOf, type KubernetesEvent } from './events.ts';
import type { Kubernetes } from './kubernetes.ts';
import { callOrThrow, Pace, Refused } from './pace.ts';

/** As long as the API server keeps events by default: an older one would come too late, and a repeated one is still there. */
const OLDEST_MS = hours(1);
/** So many incidents at one time; the others follow. */
const MOST_AT_ONCE = 10;
const NEXT_MS = 10_000;

interface EventParts {
  readonly kubernetes: Kubernetes;
  readonly ask: Ask;
  readonly clock: Clock;
  readonly changes: ChangeLog;
  readonly random: () => number;
}

interface EventNode {
  readonly name: string;
  readonly uid: string | undefined;
  /** Somebody works on the node, so that faults are expected and nobody is to be told. */
  readonly isWorkedOn: boolean;
}

/**
 * Events of the incidents that the agent lists. It keeps no queue: what is still to be written follows from the list each time. A name is
 * made of the incident, so that an event that exists already is done. A namespace that takes no event, by a quota for example, is asked
 * again later and delays no other one.
 */
export class IncidentEvents {
  readonly #parts: EventParts;
  /** Incidents of the list whose events exist, with the verdict in these events. */
  #done: ReadonlySet<string> = new Set();
  /** Incidents with an event that its namespace did not take, and when they are tried again. */
  #refused: ReadonlyMap<string, Refusal> = new Map();

  constructor(parts: EventParts) {
    this.#parts = parts;
  }

  /** Writes what is missing, the newest incidents first. Returns after how many milliseconds to call again, even without news. */
  async write(node: EventNode): Promise<number> {
    const { ask, clock } = this.#parts;
    const { answer } = await ask('/api/incidents');
    const list = incidentsIn(answer?.body);
    if (list === undefined) return NEXT_MS;
    const takenMs = Date.parse((answer?.body as { readonly takenAt?: string } | undefined)?.takenAt ?? '');
    const wanted = list.filter(({ time }) => !(takenMs - Date.parse(time) > OLDEST_MS)).flatMap(eventOf);
    const keys = new Set(wanted.map(({ key }) => key));
    this.#done = node.isWorkedOn ? keys : new Set([...keys].filter((key) => this.#done.has(key)));
    this.#refused = new Map([...this.#refused].filter(([key]) => keys.has(key) && !this.#done.has(key)));
    const nowMs = clock.monotonic();
    const waitOf = (key: string): number => this.#refused.get(key)?.pace.waitMs(nowMs) ?? 0;
    const open = wanted.filter(({ key }) => !this.#done.has(key) && waitOf(key) === 0);
    for (const { id, state, key } of open.slice(0, MOST_AT_ONCE)) {
      const { answer: asked } = await ask(`/api/incidents/${encodeURIComponent(id)}`);
      // It is not kept any more, or its agent just ended.
      if (asked === undefined || !isRecord(asked.body, id)) continue;
      await this.#create(key, eventsOf(asked.body, state, node));
    }
    this.#tell();
    const waits = [...this.#refused.values()].map(({ pace }) => pace.waitMs(clock.monotonic()));
    return Math.min(...waits, open.length > MOST_AT_ONCE ? NEXT_MS : Number.POSITIVE_INFINITY);
  }

  async #create(key: string, events: readonly KubernetesEvent[]): Promise<void> {
    const { pace, written } = this.#refused.get(key) ?? { pace: new Pace(this.#parts.random), written: new Set<string>() };
    let last: Pick<Refusal, 'namespace' | 'error'> | undefined;
    for (const event of events.filter(({ metadata }) => !written.has(metadata.name))) {
      const error = await this.#refusal(event);
      if (error === undefined) written.add(event.metadata.name);
      else last = { namespace: event.metadata.namespace, error };
    }
    const others = [...this.#refused].filter(([one]) => one !== key);
    if (last === undefined) {
      this.#refused = new Map(others);
      this.#done = new Set([...this.#done, key]);
      return;
    }
    pace.failed(last.error, this.#parts.clock.monotonic());
    this.#refused = new Map([...others, [key, { pace, written, ...last }]]);
  }

  /** Returns why the namespace of the event did not take it. Throws what concerns all namespaces. */
  async #refusal(event: KubernetesEvent): Promise<Refused | undefined> {
    const path = `/api/v1/namespaces/${encodeURIComponent(event.metadata.namespace)}/events`;
    try {
      await callOrThrow(this.#parts.kubernetes, { method: 'POST', path, body: event }, [409]);
    } catch (error) {
      if (!(error instanceof Refused) || error.status === 401 || error.status >= 500) throw error;
      if (!isNamespaceGone(error)) return error;
    }
    return undefined;
  }

  #tell(): void {
    const [first] = this.#refused.values();
    const spaces = new Set([...this.#refused.values()].map(({ namespace }) => namespace));
    const more = spaces.size > 1 ? ` (and ${spaces.size - 1} more namespaces)` : '';
    const trouble = first && {
      key: 'refused',
      message: 'a namespace does not take events',
      ended: 'each namespace took its events, or they are too old',
      detail: `${first.namespace}${more}: ${first.error.message}`,
      remedy: 'The others get theirs. Check the quota of events, the limits and the admission webhooks of the namespace.',
    };
    this.#parts.changes.update('events of namespaces', trouble === undefined ? [] : [trouble]);
  }
}

interface Refusal {
  readonly pace: Pace;
  /** Names of events of the incident that exist. */
  readonly written: Set<string>;
  readonly namespace: string;
  readonly error: Refused;
}

/** Whether the namespace of the pod is gone or ends. An event cannot be read there. */
const isNamespaceGone = ({ status, message }: Refused): boolean =>
  status === 404 || (status === 403 && message.includes('being terminated'));

const eventOf = ({ id, states, newerVersion }: ListedIncident) => {
  const state = newerVersion === undefined ? eventStateOf(states) : undefined;
  return state === undefined ? [] : [{ id, state, key: `${id} ${state}` }];
};
