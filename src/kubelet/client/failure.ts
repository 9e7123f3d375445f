import { status } from '@grpc/grpc-js';
import { connectErrno, type SocketState, socketAt } from '../../host/fs/socket-file.ts';
import type { CallError } from '../../host/grpc-connection.ts';
import type { PodResourcesReason } from '../../model/pod-resources.ts';

/** Why one question had no answer. `message` is the same at each repetition of the same trouble. */
export interface Failure {
  readonly reason: PodResourcesReason;
  readonly message: string;
}

/** What is wrong at the path, without connecting. */
export function pathFailure(path: string, state: Exclude<SocketState, { kind: 'socket' }>): Failure {
  if (state.kind === 'missing') return { reason: 'socket-missing', message: `${path}: no such socket` };
  if (state.kind === 'not-a-socket') return { reason: 'not-a-socket', message: `${path}: a ${state.what} and not a socket` };
  return errnoFailure(path, state.errno);
}

/** What the errno of looking at the path or connecting to it means. A refused connection is a socket left behind by a kubelet that ended. */
export function errnoFailure(path: string, errno: string): Failure {
  const [reason, text] = ERRNOS[errno] ?? ['other', 'cannot connect'];
  return { reason, message: `${path}: ${text} (${errno})` };
}

const ERRNOS: Readonly<Record<string, readonly [PodResourcesReason, string]>> = {
  ENOENT: ['socket-missing', 'no such socket'],
  ENOTDIR: ['socket-missing', 'no such socket'],
  ECONNREFUSED: ['refused', 'nobody listens on the socket'],
  EACCES: ['permission-denied', 'not allowed to connect'],
  EPERM: ['permission-denied', 'not allowed to connect'],
  EAGAIN: ['timeout', 'the listener has stopped accepting connections'],
  EPROTOTYPE: ['protocol-error', 'a socket of another type'],
};

/** Judges a failed call; the socket is tried once more where all that is known is "unavailable". */
export async function callFailure(path: string, method: string, error: CallError): Promise<Failure> {
  if (error.code !== status.UNAVAILABLE) return statusFailure(path, method, error);
  const errno = error.errno ?? (await connectErrno(path));
  const state = socketAt(path);
  if (state.kind !== 'socket') return pathFailure(path, state);
  if (errno !== undefined) return errnoFailure(path, errno);
  return { reason: 'protocol-error', message: `${path}: ${method}: the connection broke off or does not speak gRPC` };
}

/** Judges the status alone. */
function statusFailure(path: string, method: string, { code, details }: CallError): Failure {
  const at = `${path}: ${method}: `;
  switch (code) {
    case status.DEADLINE_EXCEEDED:
      return { reason: 'timeout', message: `${at}no answer in time` };
    case status.RESOURCE_EXHAUSTED:
      return isTooLarge(details)
        ? { reason: 'too-large', message: `${at}the answer is larger than --podresources.max-message-bytes` }
        : { reason: 'rate-limited', message: `${at}rejected by the kubelet's rate limit` };
    case status.UNIMPLEMENTED:
      // The client library's own word for an answer without a message.
      if (details === 'No message received') return statusFailure(path, method, { code: status.INTERNAL, details });
      return { reason: 'unimplemented', message: `${at}neither v1 nor v1alpha1 is served` };
    case status.PERMISSION_DENIED:
    case status.UNAUTHENTICATED:
      return { reason: 'permission-denied', message: `${at}rejected as not permitted` };
    case status.INTERNAL:
    case status.CANCELLED:
      return { reason: 'protocol-error', message: `${at}the answer is no valid gRPC or broke off` };
    default:
      return { reason: 'other', message: `${at}${statusName(code)} ${details.slice(0, 200)}`.trimEnd() };
  }
}

/** Both gRPC libraries and the rate limit answer RESOURCE_EXHAUSTED: only the text tells which. */
function isTooLarge(details: string): boolean {
  return /larger than max/i.test(details);
}

/** Kubelets before 1.28 answer UNKNOWN with "… disabled" for a method whose feature gate is off. */
export function isUnsupported({ code, details }: CallError): boolean {
  return code === status.UNIMPLEMENTED || (code === status.UNKNOWN && /disabled/i.test(details));
}

/** `OK`, `UNAVAILABLE`, …: a closed set. */
export function statusName(code: number): string {
  return status[code] ?? 'UNKNOWN';
}
