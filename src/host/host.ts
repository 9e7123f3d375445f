import { resolve } from 'node:path';
import { defined } from '../model/defined.ts';
import type { Device } from '../model/device.ts';
import { type FaultMark, NO_MARK } from '../model/fault.ts';
import type { Observe } from '../model/observation.ts';
import type { Clock } from './clock.ts';
import type { StepGuard } from './fs/step-guard.ts';
import { Tree } from './fs/tree.ts';
import { RecordedTree } from './recorded/recorded-tree.ts';
import { ReplayedTree } from './recorded/replayed-tree.ts';

/** Mount points of the machine's pseudo file systems. */
export interface Roots {
  readonly sysfs: string;
  readonly procfs: string;
  readonly dev: string;
  /** The kernel log. A relative path begins at `dev`, absent: `kmsg`. Empty: it is not read. */
  readonly kmsg?: string;
  /** Files of the programs of the host. Absent or empty: none are read. */
  readonly share?: string;
  /** The files are those of a replay, see {@link ReplayedTree}. */
  readonly isReplay?: true;
}

/** The machine as a probe sees it. Tests and the simulated node use other roots with the same code. */
export interface Host {
  readonly sys: Tree;
  readonly proc: Tree;
  readonly dev: Tree;
  /** Path of the kernel log; absent when it is not read. */
  readonly kmsg?: string;
  /** `/usr/share`. It is not recorded. The reader of a file there reports to a capture what it used. */
  readonly share?: Tree;
  readonly clock: Clock;
  /** Devices of the family that an earlier probe or run of the agent knew. */
  readonly known: readonly Device[];
  /** What the agent has counted of the faults in the log of this boot. */
  readonly counted: FaultMark;
  /** Reports child processes to the supervisor, which kills them with the probe. */
  readonly children: ChildRegistry;
  /** Takes what was read. Present only in a capture. */
  readonly observe?: Observe;
}

export interface ChildRegistry {
  /** Process group id of a started child. */
  started(pid: number): void;
  ended(pid: number): void;
}

export const noChildRegistry: ChildRegistry = { started() {}, ended() {} };

export interface HostDependencies {
  readonly children?: ChildRegistry;
  readonly guard?: StepGuard;
  readonly known?: readonly Device[];
  readonly counted?: FaultMark | undefined;
  readonly observe?: Observe | undefined;
}

export function createHost(
  roots: Roots,
  clock: Clock,
  { children = noChildRegistry, guard, known = [], counted = NO_MARK, observe }: HostDependencies = {},
): Host {
  const kmsg = kernelLogPath(roots);
  const tree = (root: string): Tree => createTree(root, { guard, observe, isReplay: roots.isReplay === true });
  return {
    sys: tree(roots.sysfs),
    proc: tree(roots.procfs),
    dev: tree(roots.dev),
    ...defined({ kmsg }),
    ...(roots.share === undefined || roots.share === '' ? {} : { share: new Tree(roots.share, guard) }),
    clock,
    children,
    known,
    counted,
    ...defined({ observe }),
  };
}

/** Path of the kernel log; undefined when it is not read. */
export const kernelLogPath = ({ dev, kmsg = 'kmsg' }: Pick<Roots, 'dev' | 'kmsg'>): string | undefined =>
  kmsg === '' ? undefined : resolve(dev, kmsg);

/** A directory outside the pseudo file systems, read as those of the host: by the same guard, and noted in a capture. */
export function treeAt({ sys, observe }: Host, root: string): Tree {
  return createTree(root, { guard: sys.guard, observe, isReplay: sys instanceof ReplayedTree });
}

interface TreeDependencies {
  readonly guard?: StepGuard | undefined;
  readonly observe?: Observe | undefined;
  readonly isReplay: boolean;
}

function createTree(root: string, { guard, observe, isReplay }: TreeDependencies): Tree {
  if (observe !== undefined) return new RecordedTree(root, guard, observe);
  return isReplay ? new ReplayedTree(root, guard) : new Tree(root, guard);
}
