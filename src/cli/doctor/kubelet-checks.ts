import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { systemClock } from '../../host/clock.ts';
import { errnoName } from '../../host/fs/tree.ts';
import { parseCheckpoint } from '../../kubelet/checkpoint/checkpoint.ts';
import { PodResourcesClient } from '../../kubelet/client/client.ts';
import { podResourcesOptions } from '../../kubelet/options.ts';
import type { PodResourcesReason } from '../../model/pod-resources.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';

const LOSS = 'Devices are still read, but which pod holds which one is not known.';

/** Cause and way out for each reason that keeps the kubelet from answering. */
export const SOCKET_ADVICE: Readonly<Record<PodResourcesReason, readonly [cause: string, remedy: string]>> = {
  'socket-missing': [
    'The kubelet does not run here, or its directory is not mounted into this container.',
    'Mount the directory /var/lib/kubelet/pod-resources (the directory, not the socket), or set --podresources.socket.',
  ],
  'not-a-socket': [
    'A path that did not exist was mounted, and the container runtime made a directory of it.',
    'Mount the directory that holds the socket instead, and remove what lies in its place.',
  ],
  refused: ['The kubelet that made the socket has ended.', 'Look at the kubelet: systemctl status kubelet.'],
  'permission-denied': ["The kubelet's socket belongs to root.", 'Run as user id 0, and allow it in the SELinux or AppArmor policy.'],
  timeout: ['The kubelet accepts the connection but does not answer in time.', 'Look at the load of the node and the log of the kubelet.'],
  'protocol-error': [
    'Something other than a kubelet listens there, or it broke off.',
    'Check that --podresources.socket is the PodResources socket.',
  ],
  'too-large': ['The node has more pods and devices than the limit expects.', 'Raise --podresources.max-message-bytes.'],
  'rate-limited': ['Other agents on this node ask the kubelet very often.', 'Find them, or lengthen --refresh.interval.'],
  unimplemented: ['This kubelet is older than the API.', 'Use Kubernetes 1.20 or newer, or turn on its feature gate KubeletPodResources.'],
  other: ['The kubelet answered with an error.', 'Look at the log of the kubelet.'],
};

export async function checkPodResources({ configuration }: CheckContext): Promise<CheckResult[]> {
  const options = configuration.section('podresources', podResourcesOptions);
  const directory = checkDirectory(dirname(options.socket));
  if (directory.status === 'finding') return [directory, skipped('podresources-socket', 'its directory cannot be reached')];
  const client = new PodResourcesClient(options, systemClock);
  const started = performance.now();
  const answer = await client.list().finally(() => client.close());
  if (!answer.ok) {
    const { reason, message } = answer.failure;
    const [cause, remedy] = SOCKET_ADVICE[reason];
    return [directory, finding('podresources-socket', `${message} [${reason}]`, `${cause} ${LOSS}`, remedy)];
  }
  const { allocations } = answer.attribution;
  const took = Math.round(performance.now() - started);
  return [directory, ok('podresources-socket', `${options.socket}: ${answer.api}, ${allocations.length} allocations in ${took} ms`)];
}

function checkDirectory(path: string): CheckResult {
  const name = 'podresources-directory';
  const [cause, remedy] = SOCKET_ADVICE['socket-missing'];
  try {
    if (statSync(path).isDirectory()) return ok(name, path);
    return finding(name, `${path} is not a directory`, `${cause} ${LOSS}`, remedy);
  } catch (error) {
    return finding(name, `${path} cannot be reached (${errnoName(error)})`, `${cause} ${LOSS}`, remedy);
  }
}

/** Without it the agent works, but a pod that lives for less than an interval may never be seen. */
export function checkCheckpoint({ configuration }: CheckContext): CheckResult[] {
  const name = 'checkpoint';
  const { checkpoint } = configuration.section('podresources', podResourcesOptions);
  if (checkpoint === '') return [skipped(name, 'turned off by an empty --podresources.checkpoint')];
  const cause = 'Pods that live for less than --refresh.interval may not be seen, and attribution takes up to one interval.';
  const remedy = 'Mount the directory /var/lib/kubelet/device-plugins read-only, or set --podresources.checkpoint.';
  try {
    const entries = parseCheckpoint(readFileSync(checkpoint, 'utf8'));
    if (entries !== undefined) return [ok(name, `${checkpoint}: ${entries.length} entries`)];
    return [
      finding(name, `${checkpoint} is not a device checkpoint`, cause, 'Point --podresources.checkpoint at the file of the kubelet.'),
    ];
  } catch (error) {
    const errno = errnoName(error);
    // The kubelet's own directory, in which it writes at the first registration.
    if (errno === 'ENOENT' && existsSync(join(dirname(checkpoint), 'kubelet.sock')))
      return [skipped(name, `${checkpoint} is not there yet: no device plugin has registered with the kubelet`)];
    return [finding(name, `${checkpoint} cannot be read (${errno})`, cause, remedy)];
  }
}
