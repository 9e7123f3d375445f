import type { Device } from '../model/device.ts';
import type { Clock } from './clock.ts';
import type { ReadGuard } from './fs/read-guard.ts';
import { Tree } from './fs/tree.ts';

/** Mount points of the machine's pseudo file systems. */
export interface Roots {
  readonly sysfs: string;
  readonly procfs: string;
  readonly dev: string;
}

/** The machine as a probe sees it. Tests and the simulated node use other roots with the same code. */
export interface Host {
  readonly sys: Tree;
  readonly proc: Tree;
  readonly dev: Tree;
  readonly clock: Clock;
  /** Devices of the family that an earlier thread or run of the agent knew. */
  readonly known: readonly Device[];
  /** Reports child processes to the supervisor, which kills them with the probe. */
  readonly children: ChildRegistry;
}

export interface ChildRegistry {
  /** Process group id of a started child. */
  started(pid: number): void;
  ended(pid: number): void;
}

export const noChildRegistry: ChildRegistry = { started() {}, ended() {} };

export interface HostParts {
  readonly children?: ChildRegistry;
  readonly guard?: ReadGuard;
  readonly known?: readonly Device[];
}

export function createHost(roots: Roots, clock: Clock, { children = noChildRegistry, guard, known = [] }: HostParts = {}): Host {
  const tree = (root: string): Tree => new Tree(root, guard);
  return { sys: tree(roots.sysfs), proc: tree(roots.procfs), dev: tree(roots.dev), clock, children, known };
}
