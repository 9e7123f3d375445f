import { status } from '@grpc/grpc-js';
import { connectErrno, type SocketState, socketAt } from '../../host/fs/socket-file.ts';
import { type CallError, OTHER_TYPE } from '../../host/grpc-connection.ts';
import type { PodResourcesReason } from '../../model/pod-resources.ts';

/** Why one request failed. `message` is identical for repeated failures with the same cause. */
export interface Failure {
  readonly reason: PodResourcesReason;
  readonly message: string;
}

/** Describes a socket path that is unusable. Does not connect. */
export function pathFailure(path: string, state: Exclude<SocketState, { kind: 'socket' }>): Failure {
  if (state.kind === 'missing') return { reason: 'socket-missing', message: `${path}: no such socket` };
  if (state.kind === 'not-a-socket') return { reason: 'not-a-socket', message: `${path}: a ${state.what}, not a socket` };
  return errnoFailure(path, state.errno);
}

/** Describes an errno of `stat` or `connect` on the path. A refused connection means that the kubelet ended and left its socket behind. */
export function errnoFailure(path: string, errno: string): Failure {
  const [reason, text] = ERRNOS[errno] ?? ['other', 'cannot connect'];
  return { reason, message: `${path}: ${text} (${errno})` };
}

const ERRNOS: Readonly<Record<string, readonly [PodResourcesReason, string]>> = {
  ENOENT: ['socket-missing', 'no such socket'],
  ENOTDIR: ['socket-missing', 'no such socket'],
  ECONNREFUSED: ['refused', 'no process listens on the socket'],
  EACCES: ['permission-denied', 'not allowed to connect'],
  EPERM: ['permission-denied', 'not allowed to connect'],
  EAGAIN: ['timeout', 'the listener does not accept connections'],
  EPROTOTYPE: ['protocol-error', 'a socket of another type'],
};

/** Classifies a failed call. For a bare "unavailable" it connects to the socket once more to find the errno. */
export async function callFailure(path: string, method: string, error: CallError): Promise<Failure> {
  if (error.code !== status.UNAVAILABLE) return statusFailure(path, method, error);
  const errno = error.errno ?? (await connectErrno(path));
  const state = socketAt(path);
  if (state.kind !== 'socket') return pathFailure(path, state);
  if (errno !== undefined) return errnoFailure(path, errno);
  return { reason: 'protocol-error', message: `${path}: ${method}: the connection was closed or the peer does not speak gRPC` };
}

/** The answer has more entries than the agent reads. `what` says how many were left out. */
export function excessFailure(path: string, method: string, what: string): Failure {
  return { reason: 'too-many-entries', message: `${path}: ${method}: the answer has too many entries; ${what} were not read` };
}

/** Classifies a failed call by its gRPC status only. */
function statusFailure(path: string, method: string, { code, details }: CallError): Failure {
  const at = `${path}: ${method}: `;
  switch (code) {
    case status.DEADLINE_EXCEEDED:
      return { reason: 'timeout', message: `${at}no answer in time` };
    case status.RESOURCE_EXHAUSTED:
      return isTooLarge(details)
        ? { reason: 'too-large', message: `${at}the answer is larger than 16 MiB` }
        : { reason: 'rate-limited', message: `${at}rejected by the kubelet's rate limit` };
    case status.UNIMPLEMENTED:
      // The client library reports an answer without a message with this text.
      if (details === 'No message received') return statusFailure(path, method, { code: status.INTERNAL, details });
      return { reason: 'unimplemented', message: `${at}the kubelet serves neither v1 nor v1alpha1` };
    case status.PERMISSION_DENIED:
    case status.UNAUTHENTICATED:
      return { reason: 'permission-denied', message: `${at}the kubelet denied permission` };
    case status.INTERNAL:
    case status.CANCELLED:
      return {
        reason: 'protocol-error',
        message: `${at}${details.startsWith(OTHER_TYPE) ? details : 'the answer is not valid gRPC or is incomplete'}`,
      };
    default:
      return { reason: 'other', message: `${at}${statusName(code)} ${details.slice(0, 200)}`.trimEnd() };
  }
}

/** Both gRPC libraries and the rate limit return RESOURCE_EXHAUSTED; only the text distinguishes them. */
function isTooLarge(details: string): boolean {
  return /larger than max/i.test(details);
}

/** Kubelets before 1.28 return UNKNOWN with "… disabled" for a method whose feature gate is off. */
export function isUnsupported({ code, details }: CallError): boolean {
  return code === status.UNIMPLEMENTED || (code === status.UNKNOWN && /disabled/i.test(details));
}

/** `OK`, `UNAVAILABLE`, …: a closed set. */
export function statusName(code: number): string {
  return status[code] ?? 'UNKNOWN';
}
