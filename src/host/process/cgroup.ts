/** Pod and container of a process, as far as its cgroup path tells. */
export interface CgroupOwner {
  /** With dashes; 32 plain hex digits for a static pod. */
  readonly podUid?: string;
  readonly containerId?: string;
}

const POD = /\/(?:[^/]*-)?pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?=[/:]|$)/;
const CONTAINER = /(?:^|[/:])(?:[a-z]+-)*?([0-9a-f]{64})(?:\.scope)?(?=\/|$)/;

/**
 * Reads the text of `/proc/<pid>/cgroup`: systemd and cgroupfs drivers, cgroup v1 and v2, containerd, CRI-O, docker. The first
 * container id after the pod counts, since a workload may nest containers of its own. In another cgroup namespace the pod may
 * be missing while the container is there.
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

/** None for a path without a pod. */
function ownerIn(path: string): readonly CgroupOwner[] {
  const match = POD.exec(path);
  if (match === null) return [];
  const podUid = (match[1] as string).replaceAll('_', '-');
  const containerId = containerIn(path.slice(match.index + match[0].length));
  return [containerId === undefined ? { podUid } : { podUid, containerId }];
}

/** The monitor of CRI-O runs beside the workload, not in it. */
function containerIn(path: string): string | undefined {
  const kept = path.replaceAll(/(?:^|\/)crio-conmon-[^/]*/g, '');
  return CONTAINER.exec(kept)?.[1];
}
