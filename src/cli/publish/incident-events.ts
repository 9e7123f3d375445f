import { isRecord } from '../../incidents/record-file.ts';
import type { ListedIncident } from '../../incidents/store.ts';
import { hours } from '../../model/duration.ts';
import type { Ask } from '../agent-api.ts';
import { incidentsIn } from '../incidents.ts';
import { eventStateOf, eventsOf, type KubernetesEvent } from './events.ts';
import type { Kubernetes } from './kubernetes.ts';
import { callOrThrow, Refused } from './pace.ts';

/** As long as the API server keeps events by default: an older one would come too late, and a repeated one is still there. */
const OLDEST_MS = hours(1);
/** So many incidents at one time; the others follow. */
const MOST_AT_ONCE = 10;
const NEXT_MS = 10_000;

/**
 * Events of the incidents that the agent lists. It keeps no queue: what is still to be written follows from the list each time. A name is
 * made of the incident, so that an event that exists already is done.
 */
export class IncidentEvents {
  readonly #kubernetes: Kubernetes;
  readonly #ask: Ask;
  /** Incidents of the list whose events exist, with the verdict in these events. */
  #done: ReadonlySet<string> = new Set();

  constructor(kubernetes: Kubernetes, ask: Ask) {
    this.#kubernetes = kubernetes;
    this.#ask = ask;
  }

  /** Writes what is missing, the newest incidents first. Returns after how many milliseconds to call again, even without news. */
  async write(node: { readonly name: string; readonly uid: string | undefined }): Promise<number> {
    const { answer } = await this.#ask('/api/incidents');
    const list = incidentsIn(answer?.body);
    if (list === undefined) return NEXT_MS;
    const takenMs = Date.parse((answer?.body as { readonly takenAt?: string } | undefined)?.takenAt ?? '');
    const wanted = list.filter(({ time }) => !(takenMs - Date.parse(time) > OLDEST_MS)).flatMap(eventOf);
    this.#done = new Set(wanted.map(({ key }) => key).filter((key) => this.#done.has(key)));
    const open = wanted.filter(({ key }) => !this.#done.has(key));
    for (const { id, state, key } of open.slice(0, MOST_AT_ONCE)) {
      const { answer: asked } = await this.#ask(`/api/incidents/${encodeURIComponent(id)}`);
      // It is not kept any more, or its agent just ended.
      if (asked === undefined || !isRecord(asked.body, id)) continue;
      for (const event of eventsOf(asked.body, state, node)) await this.#create(event);
      this.#done = new Set([...this.#done, key]);
    }
    return open.length > MOST_AT_ONCE ? NEXT_MS : Number.POSITIVE_INFINITY;
  }

  async #create(event: KubernetesEvent): Promise<void> {
    const path = `/api/v1/namespaces/${encodeURIComponent(event.metadata.namespace)}/events`;
    try {
      await callOrThrow(this.#kubernetes, { method: 'POST', path, body: event }, [409]);
    } catch (error) {
      if (!(error instanceof Refused) || !isNamespaceGone(error)) throw error;
    }
  }
}

/** Whether the namespace of the pod is gone or ends. An event cannot be read there. */
const isNamespaceGone = ({ status, message }: Refused): boolean =>
  status === 404 || (status === 403 && message.includes('being terminated'));

const eventOf = ({ id, states, newerVersion }: ListedIncident) => {
  const state = newerVersion === undefined ? eventStateOf(states) : undefined;
  return state === undefined ? [] : [{ id, state, key: `${id} ${state}` }];
};
