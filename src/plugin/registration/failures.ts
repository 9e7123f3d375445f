/** Why a resource is not registered. Closed set, used as values of the label `result` and of the log field `reason`. */
export type FailureReason = keyof typeof REMEDIES;

/** What the operator should check, keyed by reason. */
export const REMEDIES = {
  'kubelet-socket-missing': 'Is the kubelet running, and is its device-plugins directory mounted into this container?',
  'not-a-socket': 'The path of the kubelet socket holds another kind of file; remove it and restart the kubelet.',
  'serve-failed': 'Is the directory mounted writable, and may this process create sockets in it?',
  unreachable: 'No process answers at the socket; the kubelet is down or starting.',
  timeout: 'The kubelet accepted the call but does not answer; read its log.',
  refused: 'The kubelet refused the resource, for the reason it gave. Kubelets before 1.26 cannot talk to this server.',
  'no-contact': 'The plugin watcher has not called the socket; does the kubelet watch this directory?',
  'no-stream': 'The kubelet accepted the registration but did not ask for the devices; read its log.',
  'stream-ended': 'The kubelet restarted, or another plugin offers the same resource.',
  'socket-gone': 'Another process removed the socket; a starting kubelet removes all sockets.',
  dropped:
    'The kubelet reads the device list but reports none of it as allocatable: another plugin of the same resource, perhaps another agent, has ended, or --podresources.socket belongs to another kubelet.',
  'kubelet-restarted': 'No action needed: the agent registers the resource with the new kubelet.',
} as const;

/** How one attempt to be registered ended. */
export interface AttemptEnd {
  readonly reason: FailureReason | 'stopped';
  readonly detail?: string;
}

/** True when no kubelet was called. A short retry interval is then safe, because it cannot overload a kubelet. */
export function isAbsence(reason: AttemptEnd['reason']): boolean {
  return reason === 'kubelet-socket-missing' || reason === 'not-a-socket';
}
