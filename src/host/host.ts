import type { Device } from '../model/device.ts';
import type { Clock } from './clock.ts';
import type { ReadGuard } from './fs/read-guard.ts';
import { Tree } from './fs/tree.ts';

/** Where the machine's pseudo file systems are mounted. */
export interface Roots {
  readonly sysfs: string;
  readonly procfs: string;
  readonly dev: string;
}

/** The machine as a probe sees it. Tests and the simulated node give other roots; the code is the same. */
export interface Host {
  readonly sys: Tree;
  readonly proc: Tree;
  readonly dev: Tree;
  readonly clock: Clock;
  /** Devices of the family that were known before this probe was made, by an earlier thread or run of the agent. */
  readonly known: readonly Device[];
  /** Tells whoever supervises the probe about a child process, so that it dies with its probe. */
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
