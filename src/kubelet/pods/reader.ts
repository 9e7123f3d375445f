import { status } from '@grpc/grpc-js';
import {
  type ContainerStatus,
  ListPodLabelsResponse,
  ListPodsRequest,
  ListPodsResponse,
  type Pod,
  PodSpec,
  PodsService,
} from '../../generated/pods/v1alpha1/api.ts';
import type { Clock } from '../../host/clock.ts';
import { socketAt } from '../../host/fs/socket-file.ts';
import { type CallError, GrpcConnection, type Method } from '../../host/grpc-connection.ts';
import { defined } from '../../model/defined.ts';
import {
  claimBase,
  type ExtendedResource,
  isExtendedClaim,
  type PodFacts,
  type PodFactsByName,
  podName,
} from '../../model/pod-resources.ts';
import { callFailure, pathFailure } from '../client/client.ts';
import type { PodsApiOptions } from '../options.ts';

export interface PodsReaderSettings {
  readonly options: PodsApiOptions;
  /** Names of the labels to read; by default none is decoded. */
  readonly labels?: readonly string[];
  readonly clock: Clock;
  /** Called when the facts differ from the last ones. */
  readonly onChange: () => void;
  /** Called when a problem begins or becomes another one, and with undefined when it ends. */
  readonly onProblem: (message: string | undefined) => void;
  /** Called when a kubelet that did not know all its pods knows them. */
  readonly onReady?: () => void;
}

const TIMEOUT_MS = 5_000;

/**
 * How long facts stay without an answer. A kubelet that starts again does not answer for a second or two. A longer time could give a pod
 * the UID of an earlier one of its name.
 */
const HOLD_MS = 30_000;

/**
 * The kubelet logs a line for each question, so the agent asks after a change, once more after this time, and then after twice the time of before
 * up to the longest: a pod that starts has a phase and containers somewhat later.
 */
const REST_MS = { first: 2_000, longest: 30_000 };

/**
 * Asks the kubelet's Pods API for what PodResources lacks. It polls: the watch of the API loses events of a kubelet that is busy,
 * and each `List` of PodResources says when to ask. Without an answer the agent works as if there were no such API.
 */
export class PodsReader {
  readonly #settings: PodsReaderSettings;
  readonly #connection: GrpcConnection;
  readonly #listPods: Method<ListPodsRequest, PodFactsByName>;
  #facts: PodFactsByName = new Map();
  /** The facts as text, to find out whether an answer differs. */
  #text = '[]';
  #problem: string | undefined;
  /** When the facts were last valid: at the latest answer, or at a later answer of PodResources without a change. */
  #validMs: number | undefined;
  #askedMs = Number.NEGATIVE_INFINITY;
  #restMs = REST_MS.first;
  #isStarting = false;
  /** Identity of the socket that answered last. */
  #identity: string | undefined;
  /** Until then an answer may lack pods, because the kubelet has started again. Kubernetes 1.36 does not refuse to answer meanwhile. */
  #incompleteUntilMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #again = false;
  #closed = false;

  constructor(settings: PodsReaderSettings) {
    this.#settings = settings;
    this.#connection = new GrpcConnection(settings.options.socket, settings.options['max-message-bytes']);
    this.#listPods = listPods(settings.labels ?? []);
  }

  /** Empty while nothing is known. */
  current(): PodFactsByName {
    return this.#facts;
  }

  /** True while the API answers; undefined before the first question ended. */
  get isUp(): boolean | undefined {
    if (this.#problem !== undefined) return false;
    return this.#validMs === undefined ? undefined : true;
  }

  /** Asks if there may be other pods, or after a rest. Must be called with false only after an answer of PodResources. */
  look(isChanged: boolean): void {
    const nowMs = this.#settings.clock.monotonic();
    const isDue = nowMs - this.#askedMs >= this.#restMs;
    if (isChanged) this.#restMs = REST_MS.first;
    else if (isDue) this.#restMs = Math.min(2 * this.#restMs, REST_MS.longest);
    if (isChanged || isDue || this.#problem !== undefined) void this.refresh();
    else if (this.#running === undefined && this.#validMs !== undefined) this.#validMs = nowMs;
  }

  /** Asks once. A call during a run makes it ask once more, because that run may have missed a pod. Never rejects. */
  refresh(): Promise<void> {
    if (this.#running === undefined) this.#running = this.#run();
    else this.#again = true;
    return this.#running;
  }

  /** Resolves when no question is open. */
  async idle(): Promise<void> {
    await this.#running;
  }

  close(): void {
    this.#closed = true;
    this.#connection.close();
  }

  async #run(): Promise<void> {
    do {
      this.#again = false;
      await this.#ask();
    } while (this.#again && !this.#closed);
    this.#running = undefined;
  }

  async #ask(): Promise<void> {
    const { options, clock } = this.#settings;
    this.#askedMs = clock.monotonic();
    const state = socketAt(options.socket);
    if (state.kind !== 'socket') {
      this.#failed(pathFailure(options.socket, state).message);
      return;
    }
    const { answer, error } = await this.#connection.call(this.#listPods, ListPodsRequest.create(), TIMEOUT_MS);
    if (this.#closed) return;
    if (error !== undefined) {
      this.#isStarting ||= error.code === status.FAILED_PRECONDITION;
      this.#failed(await messageOf(options.socket, error));
      return;
    }
    const nowMs = clock.monotonic();
    if (this.#identity !== undefined && this.#identity !== state.identity) this.#incompleteUntilMs = nowMs + HOLD_MS;
    this.#identity = state.identity;
    this.#validMs = nowMs;
    this.#publish(nowMs < this.#incompleteUntilMs ? new Map([...this.#facts, ...answer]) : answer);
    this.#reportProblem(undefined);
    if (this.#isStarting) this.#settings.onReady?.();
    this.#isStarting = false;
  }

  #failed(message: string): void {
    const { clock } = this.#settings;
    if (this.#validMs !== undefined && clock.monotonic() - this.#validMs >= HOLD_MS) this.#publish(new Map());
    this.#reportProblem(message);
  }

  #reportProblem(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#settings.onProblem(problem);
  }

  #publish(facts: PodFactsByName): void {
    const text = JSON.stringify([...facts.values()]);
    if (text === this.#text) return;
    this.#facts = facts;
    this.#text = text;
    this.#settings.onChange();
  }
}

const listPods = (labels: readonly string[]): Method<ListPodsRequest, PodFactsByName> => ({
  path: PodsService.listPods.path,
  requestSerialize: PodsService.listPods.requestSerialize,
  responseDeserialize(bytes) {
    const byUid = labels.length === 0 ? undefined : podLabelsFrom(ListPodLabelsResponse.decode(bytes), labels);
    return podFactsFrom(ListPodsResponse.decode(bytes), byUid);
  },
});

/** The same text for each failure of one cause. */
async function messageOf(socket: string, error: CallError): Promise<string> {
  if (error.code === status.FAILED_PRECONDITION) return `${socket}: the kubelet does not know all its pods yet`;
  if (error.code === status.UNIMPLEMENTED) return `${socket}: the kubelet does not serve the Pods API`;
  if (error.code === status.RESOURCE_EXHAUSTED && /larger than max/i.test(error.details))
    return `${socket}: the answer is larger than 32 MiB`;
  return (await callFailure(socket, 'ListPods', error)).message;
}

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

function factsOf({ metadata, spec, status }: Pod, labels: LabelsByUid): PodFacts | undefined {
  const { name: pod = '', namespace = '', uid = '' } = metadata ?? {};
  if (pod === '' || uid === '') return undefined;
  const extended = extendedOf(pod, spec);
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

/**
 * Containers with exactly one extended resource in their limits. The status that the kubelet answers with lacks the claim of the scheduler, so the
 * claim is known by its name; a pod that names such a claim itself has none.
 */
function extendedOf(
  pod: string,
  { containers, initContainers, resourceClaims }: PodSpec = PodSpec.create(),
): ExtendedResource[] | undefined {
  const isNamed = resourceClaims.some(
    ({ name, resourceClaimName }) => claimBase(pod, name) === claimBase(pod) || isExtendedClaim(pod, resourceClaimName),
  );
  const found = [...initContainers, ...containers].flatMap(({ name: container, resources }): ExtendedResource[] => {
    const [resource, ...others] = Object.entries(resources?.limits ?? {}).flatMap(([name, { text }]) =>
      isExtended(name) && Number.parseFloat(text) !== 0 ? [name] : [],
    );
    return resource === undefined || others.length > 0 ? [] : [{ container, resource }];
  });
  return isNamed || found.length === 0 ? undefined : found;
}

/** As Kubernetes decides it. Devices of a class have a name of this kind without a declaration. */
const isExtended = (name: string): boolean =>
  name.startsWith('deviceclass.resource.kubernetes.io/') ||
  (name.includes('/') && !name.includes('kubernetes.io/') && !name.startsWith('requests.'));
