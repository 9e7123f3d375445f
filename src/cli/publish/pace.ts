import { shortened } from '../../model/one-line.ts';
import { type Kubernetes, type KubernetesAnswer, type Method, NoAnswer } from './kubernetes.ts';

/** Longest text of the API server in the log. */
const MESSAGE_BYTES = 300;

/** The API server accepted a write but did not store it. Written again at once, it would be so for ever. */
export class NotTaken extends Error {}

/** The API server does not have the resource in a version that is known here. */
export class NotServed extends Error {}

/** Why a write did not succeed. The kind decides how soon it is tried again. */
export class Refused extends Error {
  readonly status: number;

  constructor({ status, body }: KubernetesAnswer) {
    const { message } = (body ?? {}) as { readonly message?: unknown };
    super(typeof message === 'string' ? `${status}: ${shortened(message, MESSAGE_BYTES)}` : `status ${status}`);
    this.status = status;
  }

  /** The token is not valid, or has no right. Trying again helps only when somebody changes that. */
  get isRejection(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

/** Sends a request. Throws {@link Refused} for each status that is no success and not in `accepted`. */
export async function callOrThrow(
  kubernetes: Kubernetes,
  request: { readonly method: Method; readonly path: string; readonly body?: object; readonly contentType?: string },
  accepted: readonly number[] = [],
): Promise<KubernetesAnswer> {
  const answer = await kubernetes.call(request.method, request.path, request.body, request.contentType);
  if ((answer.status < 200 || answer.status > 299) && !accepted.includes(answer.status)) throw new Refused(answer);
  return answer;
}

const FIRST_MS = 1_000;
const LONGEST_MS = 60_000;
const REJECTED_FIRST_MS = 30_000;
const REJECTED_LONGEST_MS = 300_000;
/** Longer than the time between two patches of the same object: a try that only waits for that is no success. */
const NOT_TAKEN_FIRST_MS = 10_000;

/** Waits longer after each failure, by chance a fifth more or less, so that the nodes of a cluster do not come back together. */
export class Pace {
  #failures = 0;
  /** On the monotonic clock. */
  #untilMs = Number.NEGATIVE_INFINITY;
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  waitMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs);
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(error: unknown, nowMs: number): void {
    const isRejected = error instanceof NotServed || (error instanceof Refused && error.isRejection);
    const [first, longest] = isRejected ? [REJECTED_FIRST_MS, REJECTED_LONGEST_MS] : [FIRST_MS, LONGEST_MS];
    const soonest = error instanceof NotTaken ? NOT_TAKEN_FIRST_MS : first;
    const waitMs = Math.min(longest, soonest * 2 ** Math.min(this.#failures, 20));
    this.#failures += 1;
    this.#untilMs = nowMs + waitMs * (0.8 + 0.4 * this.#random());
  }
}

/** Returns the kind of a failure. The log has one line for each kind, however often the failure repeats. */
export function failureKind(error: unknown): string {
  if (error instanceof NoAnswer) return 'no-answer';
  if (error instanceof NotTaken) return 'not-taken';
  if (error instanceof NotServed) return 'not-served';
  if (!(error instanceof Refused)) return 'other';
  if (error.isRejection) return 'rejected';
  return error.status === 404 ? 'not-found' : 'refused';
}

export const FAILURE_REMEDIES: Readonly<Record<string, string>> = {
  'no-answer': 'It is tried again. Check the network of this pod and --publish.api-server.',
  'not-taken': 'It is tried again, less and less often. Check which admission webhook or proxy changes what the publisher writes.',
  'not-served': 'It is tried again. Switch the API on at the API server, or the option off here: docs/health-feed.md.',
  rejected: 'Check the service account of this pod, its roles and the admission policy: docs/publish.md.',
  'not-found': 'It is tried again. Check that the variable NODE_NAME has the name of a node, and that the API server serves the resource.',
};
