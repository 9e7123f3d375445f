import { type Kubernetes, type KubernetesAnswer, type Method, NoAnswer } from './kubernetes.ts';

/** Why a write did not succeed. The kind decides how soon it is tried again. */
export class Refused extends Error {
  readonly status: number;

  constructor({ status, body }: KubernetesAnswer) {
    const { message } = (body ?? {}) as { readonly message?: unknown };
    super(typeof message === 'string' ? `${status}: ${message}` : `status ${status}`);
    this.status = status;
  }

  /** The token is not valid, or has no right. Trying again helps only when somebody changes that. */
  get isRejection(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

/** Sends a request. Throws {@link Refused} for each status that is no success and not in `also`. */
export async function callOrThrow(
  kubernetes: Kubernetes,
  request: { readonly method: Method; readonly path: string; readonly body?: object; readonly contentType?: string },
  also: readonly number[] = [],
): Promise<KubernetesAnswer> {
  const answer = await kubernetes.call(request.method, request.path, request.body, request.contentType);
  if ((answer.status < 200 || answer.status > 299) && !also.includes(answer.status)) throw new Refused(answer);
  return answer;
}

const FIRST_MS = 1_000;
const LONGEST_MS = 60_000;
const REJECTED_FIRST_MS = 30_000;
const REJECTED_LONGEST_MS = 300_000;

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
    const isRejected = error instanceof Refused && error.isRejection;
    const [first, longest] = isRejected ? [REJECTED_FIRST_MS, REJECTED_LONGEST_MS] : [FIRST_MS, LONGEST_MS];
    const waitMs = Math.min(longest, first * 2 ** Math.min(this.#failures, 20));
    this.#failures += 1;
    this.#untilMs = nowMs + waitMs * (0.8 + 0.4 * this.#random());
  }
}

/** Returns the kind of a failure. The log has one line for each kind, however often the failure repeats. */
export function failureKind(error: unknown): string {
  if (error instanceof NoAnswer) return 'no-answer';
  if (!(error instanceof Refused)) return 'other';
  if (error.isRejection) return 'rejected';
  return error.status === 404 ? 'not-found' : 'refused';
}

export const FAILURE_REMEDIES: Readonly<Record<string, string>> = {
  'no-answer': 'It is tried again. Check the network of this pod and --publish.api-server.',
  rejected: 'Check the service account of this pod, its roles and the admission policy: docs/publish.md.',
  'not-found': 'It is tried again. Check that the variable NODE_NAME has the name of a node, and that the API server serves the resource.',
};
