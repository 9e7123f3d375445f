import type { HealthState, Remedy } from '../model/health.ts';
import type { PodResourcesReason } from '../model/pod-resources.ts';
import type { UnresolvedReason } from '../model/snapshot.ts';

/** What the person who reads the page should do next. */
export const REMEDY_TEXTS: Readonly<Record<Remedy, string | undefined>> = {
  none: undefined,
  reset: 'Drain and reset the device.',
  reboot: 'Drain and reboot the node.',
  replace: 'Replace the device.',
  'check-cable': 'Check cable, transceiver and the far end.',
  'check-cooling': 'Check fans, heat sink and air flow.',
  'check-power': 'Check power supply and power cables.',
  'restart-workload': 'Restart the workload.',
  'reload-driver': 'Drain the node and reload the driver.',
  reseat: 'Reseat the device in its slot.',
  inspect: 'Have a look at the node.',
};

export const STATE_WORDS: Readonly<Record<HealthState | 'missing', string>> = {
  healthy: 'Healthy',
  degraded: 'Degraded',
  unhealthy: 'Unhealthy',
  unknown: 'Unknown',
  missing: 'Missing',
};

export const KUBELET_REMEDIES: Readonly<Record<PodResourcesReason, string>> = {
  'socket-missing': 'Check that the kubelet runs and that its pod-resources directory is mounted where --podresources.socket says.',
  refused: 'The socket is there but nobody listens: the kubelet is stopped or restarting.',
  'permission-denied': 'Run the agent as root, or give its user access to the socket.',
  'not-a-socket': 'Check --podresources.socket: something else lies at that path.',
  timeout: 'The kubelet is overloaded or hangs: look at its log.',
  'protocol-error': 'Check --podresources.socket: what answers there does not speak the PodResources API.',
  'too-large': 'The answer of the kubelet is larger than the agent accepts.',
  'rate-limited': 'Other programs ask the kubelet too often; the latest answer stays in use.',
  unimplemented: 'Turn on the PodResources API of the kubelet.',
  other: "Look at the agent's log.",
};

export const UNRESOLVED_TEXTS: Readonly<Record<UnresolvedReason, string>> = {
  'no-device': 'No probe knows a device of this name. Turn its family on, or configure which devices the resource stands for.',
  ambiguous: 'Devices of several families answer to this name. Configure which devices the resource stands for.',
  'missing-device': 'The device was there and is now missing.',
};
