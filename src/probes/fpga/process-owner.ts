import type { Tree } from '../../host/tree.ts';
import type { DeviceProcess } from '../../model/collection.ts';

const POD = /pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})/i;
const CONTAINER = /(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?$/im;

/** Pod and container of a process, from the text of its `cgroup` file. systemd writes the pod's uid with underscores. */
export function parseCgroup(text: string): Pick<DeviceProcess, 'podUid' | 'containerId'> {
  const podUid = POD.exec(text)?.[1]?.replaceAll('_', '-').toLowerCase();
  const containerId = CONTAINER.exec(text)?.[1]?.toLowerCase();
  return { ...(podUid !== undefined && { podUid }), ...(containerId !== undefined && { containerId }) };
}

/** A process that holds a board, with its pod where `/proc` of the host is visible. */
export function describeProcess(proc: Tree, pid: number): DeviceProcess {
  return { pid, ...parseCgroup(proc.text(`${pid}/cgroup`) ?? '') };
}
