import type { ActiveCondition, HealthState, PendingCondition, Remedy } from '../../model/health.ts';
import type { PodResourcesReason } from '../../model/pod-resources.ts';
import type { UnresolvedReason } from '../../model/snapshot.ts';
import { timeText } from '../api/names.ts';
import { durationText } from './units.ts';

/** What the person who reads the page should do next. */
export const REMEDY_TEXTS: Readonly<Record<Remedy, string | undefined>> = {
  none: undefined,
  reset: 'Drain and reset the device.',
  reboot: 'Drain and reboot the node.',
  replace: 'Replace the device.',
  'check-cable': 'Check cable, transceiver and the far end.',
  'enable-port': 'Enable the port: by "ip link set <interface> up" on Ethernet, by "ibportstate <lid> <port> enable" on InfiniBand.',
  'check-subnet-manager': 'Check that a subnet manager runs in the fabric.',
  'check-cooling': 'Check fans, heat sink and air flow.',
  'check-power': 'Check power supply and power cables.',
  'restart-workload': 'Restart the workload.',
  'reload-driver': 'Drain the node and reload the driver.',
  reseat: 'Reseat the device in its slot.',
  inspect: 'Have a look at the node.',
};

/** The message of a condition and how the condition stands. The message was written while it held. */
export function conditionSentences(condition: ActiveCondition | PendingCondition, nowMs: number): readonly string[] {
  const { message, unverifiedSinceMs } = condition;
  const blind = (question: string): string =>
    `Since ${clockText(unverifiedSinceMs ?? nowMs, nowMs)} no look can tell whether it ${question}.`;
  const isBlind = unverifiedSinceMs !== undefined;
  if ('countsAtMs' in condition) {
    const goesOn = `If it goes on, it counts from ${clockText(condition.countsAtMs, nowMs)}.`;
    return [message, isBlind ? `${blind('still holds')} Until one can, it does not count.` : `It does not count yet. ${goesOn}`];
  }
  const { recovering } = condition;
  if (recovering === undefined) return isBlind ? [message, blind('still holds')] : [message];
  const withdrawn = `If it stays so, the first look after ${clockText(recovering.untilMs, nowMs)} withdraws it.`;
  return [
    `It ended ${durationText(nowMs - recovering.sinceMs)} ago. Its last message was '${message}'.`,
    isBlind ? `${blind('stays so')} Until one can, it is not withdrawn.` : `${withdrawn} There is nothing to do meanwhile.`,
  ];
}

/** `12:03:20 UTC`, with the day where that is not today. */
function clockText(ms: number, nowMs: number): string {
  const [day, time] = (timeText(ms) ?? '').split('T');
  const [today] = (timeText(nowMs) ?? '').split('T');
  const clock = `${time?.slice(0, 8)} UTC`;
  return day === today ? clock : `${day} ${clock}`;
}

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
