/** Why a resource is not registered. Closed set: value of the label `result` and of the log field `reason`. */
export type FailureReason = keyof typeof REMEDIES;

/** What to look at, by reason. */
export const REMEDIES = {
  'kubelet-socket-missing': 'Is the kubelet running, and is its device-plugins directory mounted into this container?',
  'not-a-socket': 'Something else lies where the kubelet listens; remove it and restart the kubelet.',
  'serve-failed': 'Is the directory mounted writable, and may this process create sockets in it?',
  unreachable: 'Nobody answers at the socket; the kubelet is down or starting.',
  timeout: 'The kubelet accepted the call and does not answer; look at its log.',
  refused: 'The kubelet refused the resource, for the reason it gave. Kubelets before 1.26 cannot talk to this server.',
  'no-contact': 'The plugin watcher has not looked at the socket; is the directory the one that the kubelet watches?',
  'no-stream': 'The kubelet took the registration and did not ask for the devices; look at its log.',
  'stream-ended': 'The kubelet restarted, or another plugin offers the same resource.',
  'socket-gone': 'Somebody removed the socket; a starting kubelet does that to all of them.',
  dropped:
    'The kubelet reads the list and has no device of it: another plugin of the same resource, perhaps another agent, has ended, or this is not the kubelet of --podresources.socket.',
  'kubelet-restarted': 'None needed: a new kubelet is told of the resource.',
} as const;

/** How one attempt to be registered ended. */
export interface AttemptEnd {
  readonly reason: FailureReason | 'stopped';
  readonly detail?: string;
}

/** Nothing was asked of the kubelet: look again soon, there is nobody to overload. */
export function isAbsence(reason: AttemptEnd['reason']): boolean {
  return reason === 'kubelet-socket-missing' || reason === 'not-a-socket';
}
