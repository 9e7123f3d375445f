import type { ContainerAllocateResponse } from '../../generated/deviceplugin/v1beta1/api.ts';

/** Linux starts no process with a variable of 128 KiB. */
const LONGEST_LIST = 64 << 10;

interface Node {
  readonly path: string;
  readonly hostPath?: string | undefined;
  readonly permissions: string;
}

interface HostMount {
  readonly path: string;
  readonly hostPath: string;
  readonly readOnly: boolean;
}

/** Merges the needs of several devices into one answer, without duplicates, in insertion order. */
export class ContainerAnswer {
  readonly #env = new Map<string, string[]>();
  readonly #lists = new Map<string, string[]>();
  readonly #annotations = new Map<string, string[]>();
  readonly #nodes = new Map<string, Node>();
  readonly #mounts = new Map<string, HostMount>();
  readonly #cdi = new Set<string>();

  env(name: string, value: string): void {
    addOnce(this.#env, name, value);
  }

  /** A variable that is left out when it is too long for a process to start with, because a part of the list would be wrong. */
  listed(name: string, value: string): void {
    addOnce(this.#lists, name, value);
  }

  annotation(name: string, value: string): void {
    addOnce(this.#annotations, name, value);
  }

  node(node: Node): void {
    const known = this.#nodes.get(node.path)?.permissions ?? '';
    const permissions = [...'rwm'].filter((letter) => `${known}${node.permissions}`.includes(letter)).join('');
    this.#nodes.set(node.path, { ...node, permissions });
  }

  mount(mount: HostMount): void {
    if (!this.#mounts.has(mount.path)) this.#mounts.set(mount.path, mount);
  }

  cdi(name: string): void {
    this.#cdi.add(name);
  }

  response(): ContainerAllocateResponse {
    const lists = Object.entries(joined(this.#lists)).filter(([, list]) => Buffer.byteLength(list) <= LONGEST_LIST);
    return {
      envs: { ...Object.fromEntries(lists), ...joined(this.#env) },
      mounts: [...this.#mounts.values()].map(({ path, hostPath, readOnly }) => ({ containerPath: path, hostPath, readOnly })),
      devices: [...this.#nodes.values()].map(({ path, hostPath, permissions }) => ({
        containerPath: path,
        hostPath: hostPath ?? path,
        permissions,
      })),
      annotations: joined(this.#annotations),
      cdiDevices: [...this.#cdi].map((name) => ({ name })),
    };
  }
}

function addOnce(map: Map<string, string[]>, name: string, value: string): void {
  const values = map.get(name) ?? [];
  if (!values.includes(value)) values.push(value);
  map.set(name, values);
}

const joined = (map: ReadonlyMap<string, readonly string[]>): Record<string, string> =>
  Object.fromEntries([...map].map(([name, values]) => [name, values.join(',')]));
