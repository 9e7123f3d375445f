import { defined } from '../../model/defined.ts';

/** Pod and container of a process, from its cgroup path. */
export interface CgroupOwner {
  /** With dashes; 32 plain hex digits for a static pod. */
  readonly podUid?: string;
  readonly containerId?: string;
}

const UID = '([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})';
/**
 * Path of a pod below the kubelet's own cgroup, `kubepods`, which is itself below `--cgroup-root` and below the cgroup of a node in a container.
 * Driver cgroupfs: `/kubepods/burstable/pod<uid>`. Driver systemd: `/kubepods.slice/…/kubepods-burstable-pod<uid>.slice`. In the cgroup
 * namespace of another pod a path begins with `..`, and may do so without the word. From cm/pod_container_manager_linux.go of the kubelet.
 */
const POD = new RegExp(
  `/(?:(?:kubepods|\\.\\.)/(?:(?:burstable|besteffort)/)?pod${UID}|(?:[^/]*-)?kubepods(?:-burstable|-besteffort)?-pod${UID}\\.slice)(?=[/:]|$)`,
);
const CONTAINER = /(?:^|[/:])(?:[a-z]+-)*?([0-9a-f]{64})(?:\.scope)?(?=\/|$)/;
/**
 * Cgroups of systemd for users, and for machines (systemd-nspawn, libvirt). Below its own, `user@<uid>.service`, a user without rights creates
 * cgroups of any name, and so does root of a machine.
 */
const OF_USER = /\/(?:user(?:\.slice|-\d+\.slice|@\d+\.service)|machine-[^/]*\.scope|systemd-nspawn@[^/]*\.service)(?=\/|$)/;
/** A hierarchy of cgroup v1 without a controller, which accounts for nothing. The kubelet creates its pods in those with controllers, too. */
const NAMED = /^\d+:name=/;

/**
 * Parses the text of `/proc/<pid>/cgroup`: systemd and cgroupfs drivers, cgroup v1 and v2, containerd, CRI-O, docker. It takes the first
 * container id after the pod, because a workload may nest its own containers. In another cgroup namespace the path may contain the
 * container without the pod. What is below the cgroup of a user or of a machine is neither, whatever its name.
 */
export function parseCgroup(text: string): CgroupOwner {
  const lines = text.split('\n');
  const accounting = lines.filter((line) => /^\d+:[^:]+:/.test(line) && !NAMED.test(line));
  const paths = (accounting.length === 0 ? lines : lines.filter((line) => !NAMED.test(line)))
    .map((line) => /^\d+:[^:]*:(.*)$/.exec(line)?.[1])
    .filter((path) => path !== undefined);
  const inPods = paths.flatMap(ownerIn);
  const inPod = inPods.find(({ containerId }) => containerId !== undefined) ?? inPods[0];
  if (inPod !== undefined) return inPod;
  const containerId = paths
    .filter((path) => !OF_USER.test(path))
    .map(containerIn)
    .find((id) => id !== undefined);
  return defined({ containerId });
}

/** Empty for a path without a pod. */
function ownerIn(path: string): readonly CgroupOwner[] {
  const match = POD.exec(path);
  if (match === null || OF_USER.test(path.slice(0, match.index + 1))) return [];
  const podUid = (match[1] ?? (match[2] as string)).replaceAll('_', '-');
  const containerId = containerIn(path.slice(match.index + match[0].length));
  return [containerId === undefined ? { podUid } : { podUid, containerId }];
}

/** Container id in a path. The monitor of CRI-O (`crio-conmon`) is not part of the workload and is ignored. */
function containerIn(path: string): string | undefined {
  const kept = path.replaceAll(/(?:^|\/)crio-conmon-[^/]*/g, '');
  return CONTAINER.exec(kept)?.[1];
}
