import type { ContainerAllocateResponse } from '../../generated/deviceplugin/v1beta1/api.ts';
import type { Device } from '../../model/device.ts';

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

/** Values for the placeholders of one granted device; `device` is absent for a plain device node. */
export interface TemplateContext {
  readonly resource: string;
  readonly id: string;
  readonly device?: Device;
  readonly path?: string;
}

/** Replaces the placeholders. Returns undefined when the device lacks one of the values, because a partly filled text would be wrong. */
export function fillTemplate(text: string, context: TemplateContext): string | undefined {
  let complete = true;
  const filled = text.replace(/\{([A-Za-z]+)\}/g, (_, name: string) => {
    const value = placeholder(name, context);
    if (value === undefined) complete = false;
    return value ?? '';
  });
  return complete ? filled : undefined;
}

/** Value of each placeholder that is a fact of the device. */
const DEVICE_FACTS: Readonly<Record<string, (device: Device) => string | number | undefined>> = {
  name: ({ id }) => id,
  uuid: ({ uuid }) => uuid,
  bdf: ({ pciAddress }) => pciAddress,
  index: ({ index }) => index,
  minor: ({ minor }) => minor,
  moduleId: ({ moduleId }) => moduleId,
  model: ({ model }) => model,
  serial: ({ serial }) => serial,
  driver: ({ driver }) => driver,
  numa: ({ numaNode }) => numaNode,
  pciVendor: ({ pciVendor }) => pciVendor,
  pciDevice: ({ pciDevice }) => pciDevice,
  pciPath: ({ pciPath }) => pciPath,
  physicalFunction: ({ physicalFunction }) => physicalFunction,
  vfIndex: ({ vfIndex }) => vfIndex,
  sfNumber: ({ sfNumber }) => sfNumber,
  netdev: ({ netdevs }) => netdevs?.[0],
  profile: ({ profile }) => profile,
  gpuInstance: ({ gpuInstance }) => gpuInstance,
  computeInstance: ({ computeInstance }) => computeInstance,
};

/** All placeholders that configuration texts can use. */
export const PLACEHOLDERS: readonly string[] = ['id', 'path', 'resource', 'RESOURCE', ...Object.keys(DEVICE_FACTS)];

function placeholder(name: string, { resource, id, device, path }: TemplateContext): string | undefined {
  switch (name) {
    case 'resource':
      return resource;
    case 'RESOURCE':
      return resource.toUpperCase().replace(/[^A-Z0-9]/g, '_');
    case 'id':
      return id;
    case 'path':
      return path;
    default:
      return device === undefined ? undefined : DEVICE_FACTS[name]?.(device)?.toString();
  }
}

/** Why a kubelet call is refused. Closed set, used as values of the label `result`. */
export const REFUSAL_REASONS = ['unknown-device', 'unhealthy-device', 'dirty-device', 'unsupported-strategy', 'invalid-request'] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** gRPC sends the message in a trailer, and clients refuse trailers of more than 8 to 64 KiB. */
const MOST_BYTES = 1_024;

/** The kubelet copies the message into the pod's status, so the message names the device and the reason. */
export class Refusal extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string) {
    super(cutTo(message, MOST_BYTES));
    this.name = 'Refusal';
    this.reason = reason;
  }
}

const MOST_IDS = 5;
const MOST_ID_LENGTH = 100;

/** Lists the first ids in quotes, and counts the others. */
export function listed(ids: readonly string[]): string {
  const shown = ids.slice(0, MOST_IDS).map((id) => JSON.stringify(id.length <= MOST_ID_LENGTH ? id : `${id.slice(0, MOST_ID_LENGTH)}…`));
  const others = ids.length - shown.length;
  return others === 0 ? shown.join(', ') : `${shown.join(', ')} and ${others} more`;
}

function cutTo(text: string, mostBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= mostBytes) return text;
  // A character that was cut in two becomes U+FFFD, which is dropped.
  return `${bytes
    .subarray(0, mostBytes - 3)
    .toString('utf8')
    .replace(/\uFFFD+$/, '')}…`;
}
