/** Pod and container of a process, from its cgroup path. */
export interface CgroupOwner {
  /** With dashes; 32 plain hex digits for a static pod. */
  readonly podUid?: string;
  readonly containerId?: string;
}

const POD = /\/(?:[^/]*-)?pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?=[/:]|$)/;
const CONTAINER = /(?:^|[/:])(?:[a-z]+-)*?([0-9a-f]{64})(?:\.scope)?(?=\/|$)/;

/**
 * Parses the text of `/proc/<pid>/cgroup`: systemd and cgroupfs drivers, cgroup v1 and v2, containerd, CRI-O, docker. It takes the first
 * container id after the pod, because a workload may nest its own containers. In another cgroup namespace the path may contain the
 * container without the pod.
 */
export function parseCgroup(text: string): CgroupOwner {
  const paths = text
    .split('\n')
    .map((line) => /^\d+:[^:]*:(.*)$/.exec(line)?.[1])
    .filter((path) => path !== undefined);
  const inPods = paths.flatMap(ownerIn);
  const inPod = inPods.find(({ containerId }) => containerId !== undefined) ?? inPods[0];
  if (inPod !== undefined) return inPod;
  const containerId = paths.map(containerIn).find((id) => id !== undefined);
  return containerId === undefined ? {} : { containerId };
}

/** Empty for a path without a pod. */
function ownerIn(path: string): readonly CgroupOwner[] {
  const match = POD.exec(path);
  if (match === null) return [];
  const podUid = (match[1] as string).replaceAll('_', '-');
  const containerId = containerIn(path.slice(match.index + match[0].length));
  return [containerId === undefined ? { podUid } : { podUid, containerId }];
}

/** Container id in a path. The monitor of CRI-O (`crio-conmon`) is not part of the workload and is ignored. */
function containerIn(path: string): string | undefined {
  const kept = path.replaceAll(/(?:^|\/)crio-conmon-[^/]*/g, '');
  return CONTAINER.exec(kept)?.[1];
}
