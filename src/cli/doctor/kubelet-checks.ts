import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { systemClock } from '../../host/clock.ts';
import { errnoName } from '../../host/fs/tree.ts';
import { CheckpointReader } from '../../kubelet/checkpoint/checkpoint.ts';
import { documentThread } from '../../kubelet/document-kinds.ts';
import { draOptions, podResourcesOptions } from '../../kubelet/options.ts';
import type { PodResourcesReason } from '../../model/pod-resources.ts';
import type { AllocationState } from '../../model/snapshot.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';

const LOSS = 'The agent still reads devices, but does not know which pod holds which device.';

/** Cause and remedy for each reason of a failed request to the kubelet. */
export const SOCKET_ADVICE: Readonly<Record<PodResourcesReason, readonly [cause: string, remedy: string]>> = {
  'socket-missing': [
    'The kubelet does not run here, or its directory is not mounted into this container.',
    'Mount the directory /var/lib/kubelet/pod-resources (the directory, not the socket), or set --podresources.socket.',
  ],
  'not-a-socket': [
    'The mounted path did not exist, so the container runtime created a directory there.',
    'Remove the created directory, and mount the directory that contains the socket instead.',
  ],
  refused: ['The kubelet that created the socket has ended.', 'Check the kubelet: systemctl status kubelet.'],
  'permission-denied': ["The kubelet's socket belongs to root.", 'Run as user id 0, and allow it in the SELinux or AppArmor policy.'],
  timeout: ['The kubelet accepts the connection but does not answer in time.', 'Check the load of the node and the log of the kubelet.'],
  'protocol-error': [
    'Another process than the kubelet listens there, or the connection was closed.',
    'Check that --podresources.socket is the path of the PodResources socket.',
  ],
  'too-large': [
    'The answer of the kubelet is larger than the limit, because the node has many pods and devices.',
    'Move pods to other nodes, and report it with the number of pods and devices: the limit is constant.',
  ],
  'rate-limited': ['Other agents on this node ask the kubelet very often.', 'Find and stop them, or increase --refresh.interval.'],
  unimplemented: ['This kubelet is older than the API.', 'Use Kubernetes 1.20 or newer, or enable its feature gate KubeletPodResources.'],
  other: ['The kubelet answered with an error.', 'Check the log of the kubelet.'],
};

export async function checkPodResources({ configuration, ask }: CheckContext): Promise<CheckResult[]> {
  const options = configuration.section('podresources', podResourcesOptions);
  const directory = checkDirectory(dirname(options.socket));
  if (directory.status === 'finding') return [directory, skipped('podresources-socket', 'its directory cannot be reached')];
  const kubelet = kubeletIn((await ask('/api/v1/status')).answer?.body);
  if (kubelet !== undefined) return [directory, judgeAnswer(kubelet, options.socket)];
  // gRPC takes memory, and only a command without an agent needs it.
  const [{ PodResourcesClient }, { systemClock }] = await Promise.all([
    import('../../kubelet/client/client.ts'),
    import('../../host/clock.ts'),
  ]);
  const client = new PodResourcesClient(options, systemClock);
  const started = performance.now();
  const answer = await client.list().finally(() => client.close());
  if (!answer.ok) {
    return [directory, failed(answer.failure)];
  }
  const { allocations } = answer.attribution;
  const took = Math.round(performance.now() - started);
  return [directory, ok('podresources-socket', `${options.socket}: ${answer.api}, ${allocations.length} allocations in ${took} ms`)];
}

/** State of the kubelet, as the running agent reports it. */
interface ReportedKubelet {
  readonly api?: string;
  readonly answeredAt?: string;
  readonly problem?: { readonly reason: PodResourcesReason; readonly message: string };
}

/** Undefined when another program answered, or when the agent has not asked the kubelet yet. */
function kubeletIn(body: unknown): ReportedKubelet | undefined {
  const { kubelet } = (body ?? {}) as { readonly kubelet?: ReportedKubelet };
  if (typeof kubelet !== 'object' || kubelet === null) return undefined;
  const { answeredAt, problem } = kubelet;
  if (problem !== undefined && !Object.hasOwn(SOCKET_ADVICE, problem.reason)) return undefined;
  return answeredAt === undefined && problem === undefined ? undefined : kubelet;
}

function judgeAnswer({ api, answeredAt, problem }: ReportedKubelet, socket: string): CheckResult {
  if (problem !== undefined) return failed(problem);
  return ok('podresources-socket', `${socket}: ${api}, the agent had an answer at ${answeredAt}`);
}

function failed({ reason, message }: { readonly reason: PodResourcesReason; readonly message: string }): CheckResult {
  const [cause, remedy] = SOCKET_ADVICE[reason];
  return finding('podresources-socket', `${message} [${reason}]`, `${cause} ${LOSS}`, remedy);
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

/** The checkpoint is optional. Without it the agent may never see a pod that lives for less than an interval. */
export async function checkCheckpoint({ configuration }: CheckContext): Promise<CheckResult[]> {
  const name = 'checkpoint';
  const { checkpoint } = configuration.section('podresources', podResourcesOptions);
  if (checkpoint === '') return [skipped(name, 'turned off by an empty --podresources.checkpoint')];
  const cause = 'The agent may not see pods that live for less than --refresh.interval, and it sees other pods up to one interval late.';
  const remedy = 'Mount the directory /var/lib/kubelet/device-plugins read-only, or set --podresources.checkpoint.';
  // This is the kubelet's own directory. The kubelet writes the checkpoint at the first registration of a plugin.
  if (!existsSync(checkpoint) && existsSync(join(dirname(checkpoint), 'kubelet.sock')))
    return [skipped(name, `${checkpoint} does not exist yet: no device plugin has registered with the kubelet`)];
  if (!existsSync(checkpoint)) return [finding(name, `${checkpoint} does not exist`, cause, remedy)];
  const thread = documentThread(systemClock);
  const { entries, problem } = await new CheckpointReader(checkpoint, thread, systemClock).read();
  thread.close();
  if (problem === undefined) return [ok(name, `${checkpoint}: ${entries.length} entries`)];
  const isOther = problem.code === 'not-a-checkpoint';
  return [finding(name, problem.message, cause, isOther ? "Set --podresources.checkpoint to the kubelet's checkpoint file." : remedy)];
}

const CLAIMS = 'claims';
const MOST_DRIVERS = 16;

const IDS = 'device-ids';

/** Names each resource of a device plugin with an id that leads to no device. */
export async function checkIds({ collect, ask }: CheckContext): Promise<CheckResult[]> {
  const { answer } = await ask('/api/v1/allocations');
  return judgeIds(
    idsIn(answer?.body) ?? (await collect()).allocations.flatMap(({ allocation, unresolved }) => idState(allocation, unresolved)),
  );
}

interface IdState {
  readonly resource: string;
  readonly unresolved?: string;
}

export function judgeIds(ids: readonly IdState[]): CheckResult[] {
  if (ids.length === 0) return [skipped(IDS, 'no container holds an id of a device plugin')];
  const resources = [...new Set(ids.map(({ resource }) => resource))].sort();
  const findings = resources.flatMap((resource) => {
    const own = ids.filter((one) => one.resource === resource);
    const lost = own.filter(({ unresolved }) => unresolved !== undefined);
    if (lost.length === 0) return [];
    return [finding(IDS, `resource ${resource}: ${lost.length} of ${own.length} ids have no device`, ...ID_ADVICE)];
  });
  if (findings.length > 0) return findings.slice(0, MOST_DRIVERS);
  return [ok(IDS, `${ids.length} of ${resources.join(', ')}`)];
}

const ID_ADVICE = [
  'The ids name no device that a probe found. Plugins that count, and schedulers that choose the device by themselves, have such ids.',
  'Name the devices of the resource in a rule of join.rules. Where a scheduler chooses the device, name the resource in usage.delegated-ids: the processes then tell who uses which device. A resource without hardware belongs in podresources.without-hardware.',
] as const;

const idState = ({ claim, resource }: { readonly claim?: unknown; readonly resource: string }, unresolved: unknown): IdState[] =>
  claim === undefined ? [typeof unresolved === 'string' ? { resource, unresolved } : { resource }] : [];

/** Another program may answer at the address. */
function idsIn(body: unknown): readonly IdState[] | undefined {
  const allocations = (body as { readonly allocations?: unknown } | null | undefined)?.allocations;
  if (!Array.isArray(allocations)) return undefined;
  return allocations.flatMap((one: { claim?: unknown; resource?: unknown; unresolved?: unknown }) =>
    typeof one.resource === 'string' ? idState({ ...one, resource: one.resource }, one.unresolved) : [],
  );
}

/** The fields of an allocation that the check needs. The API of a running agent has the same fields. */
type ClaimState = { readonly driver: string; readonly unresolved?: string };
/** How the metadata files of a driver look on this node. */
export type MetadataState = 'no-directory' | 'not-written' | 'written';

/** Names each DRA driver with a device that cannot be joined to hardware. */
export async function checkClaims({ configuration, collect, ask }: CheckContext): Promise<CheckResult[]> {
  const { answer } = await ask('/api/v1/allocations');
  const claims = claimsIn(answer?.body) ?? (await collect()).allocations.flatMap(claimState);
  const directory = configuration.section('dra', draOptions)['metadata-dir'];
  return judgeClaims(claims, (driver) => {
    if (directory === '' || !existsSync(directory)) return 'no-directory';
    return existsSync(join(directory, driver, 'dra-device-metadata')) ? 'written' : 'not-written';
  });
}

export function judgeClaims(claims: readonly ClaimState[], metadataOf: (driver: string) => MetadataState): CheckResult[] {
  if (claims.length === 0) return [skipped(CLAIMS, 'no container holds a device by a claim')];
  const drivers = [...new Set(claims.map(({ driver }) => driver))].sort();
  const findings = drivers.flatMap((driver) => {
    const own = claims.filter((claim) => claim.driver === driver);
    const lost = own.filter(({ unresolved }) => unresolved !== undefined);
    if (lost.length === 0) return [];
    const [cause, remedy] = ADVICE[metadataOf(driver)](driver);
    return [finding(CLAIMS, `driver ${driver}: ${lost.length} of ${own.length} allocations have no device`, cause, remedy)];
  });
  if (findings.length > 0) return findings.slice(0, MOST_DRIVERS);
  return [ok(CLAIMS, `${claims.length} ${claims.length === 1 ? 'allocation' : 'allocations'} of ${drivers.join(', ')}`)];
}

const RULE = 'Or name the devices in a rule of join.rules whose resource is the name of the driver. docs/dra.md explains both.';

const ADVICE: Readonly<Record<MetadataState, (driver: string) => readonly [cause: string, remedy: string]>> = {
  'no-directory': (driver) => [
    `The agent does not see the metadata files of ${driver}, and neither its CDI specs nor its names lead to a device.`,
    `Mount the directory /var/lib/kubelet/plugins read-only, or set --dra.metadata-dir. ${RULE}`,
  ],
  'not-written': (driver) => [
    `The driver ${driver} writes no metadata, and neither its CDI specs nor its names lead to a device.`,
    `Switch on the metadata of the driver, often the feature gate DeviceMetadata, if that costs no other feature of it. ${RULE}`,
  ],
  written: (driver) => [
    `The driver ${driver} writes metadata, but no probe finds the device that it names, or the device is missing.`,
    `Check the results of the probes in this report. The agent knows only devices of families whose probe runs. ${RULE}`,
  ],
};

function claimState({ allocation: { claim }, unresolved }: AllocationState): ClaimState[] {
  return claim === undefined ? [] : [unresolved === undefined ? { driver: claim.driver } : { driver: claim.driver, unresolved }];
}

/** Another program may answer at the address. */
function claimsIn(body: unknown): readonly ClaimState[] | undefined {
  const allocations = (body as { readonly allocations?: unknown } | null | undefined)?.allocations;
  if (!Array.isArray(allocations)) return undefined;
  return allocations.flatMap(({ claim, unresolved }: { claim?: { driver?: unknown }; unresolved?: unknown }): ClaimState[] => {
    if (typeof claim?.driver !== 'string') return [];
    return [typeof unresolved === 'string' ? { driver: claim.driver, unresolved } : { driver: claim.driver }];
  });
}
