/** The ids of one resource that the node can allocate. */
export interface Supply {
  readonly resource: string;
  readonly deviceIds: readonly string[];
}

/** A planned pod with its devices. */
export interface PlannedPod {
  readonly namespace: string;
  readonly name: string;
  readonly container: string;
  readonly devices: readonly { readonly resource: string; readonly deviceIds: readonly string[] }[];
  /** Ids of devices that it holds and does not use; absent when it uses all of them. */
  readonly idleIds?: readonly string[];
}

interface Kind {
  readonly namespace: string;
  readonly name: string;
  readonly container: string;
  /** Resource (by prefix of its name) and amount. */
  readonly wants: readonly (readonly [prefix: string, amount: number])[];
  /** Number of devices that it holds and does not use. */
  readonly unused?: number;
}

/** Typical workloads. Pods take their kind from this list in turn. */
const KINDS: readonly Kind[] = [
  {
    namespace: 'training',
    name: 'llm',
    container: 'worker',
    wants: [
      ['nvidia.com/gpu', 1],
      ['nvidia.com/ib_pf', 1],
    ],
  },
  { namespace: 'genomics', name: 'aligner', container: 'kernel', wants: [['fpga.intel.com/', 1]] },
  { namespace: 'simulation', name: 'mpi', container: 'rank', wants: [['device-agent.dev/', 1]] },
  { namespace: 'inference', name: 'chat', container: 'server', wants: [['nvidia.com/mig', 1]] },
  { namespace: 'video', name: 'transcode', container: 'encoder', wants: [['amd.com/', 1]] },
  { namespace: 'storage', name: 'nvmf', container: 'target', wants: [['rdma/', 1]] },
  { namespace: 'training', name: 'finetune', container: 'trainer', wants: [['nvidia.com/gpu', 2]], unused: 1 },
  { namespace: 'web', name: 'front', container: 'nginx', wants: [] },
];

/**
 * Plans the pods of the node after `changes` replacements. Each pod takes free devices; a pod whose request cannot be met runs without
 * devices, as most pods of a node do.
 */
export function planPods(supplies: readonly Supply[], count: number, changes: number): readonly PlannedPod[] {
  const free = new Map(supplies.map(({ resource, deviceIds }) => [resource, [...deviceIds]]));
  return Array.from({ length: count }, (_, slot) => {
    // One slot after the other gets a new pod; the pod's name contains the generation.
    const generation = count === 0 ? 0 : Math.floor((changes + count - 1 - slot) / count);
    const kind = KINDS[slot % KINDS.length] as Kind;
    const devices = kind.wants.flatMap(([prefix, amount]) => take(free, prefix, amount));
    const idleIds = kind.unused === undefined ? [] : devices.flatMap(({ deviceIds }) => deviceIds).slice(-kind.unused);
    return {
      namespace: kind.namespace,
      name: `${kind.name}-${Math.floor(slot / KINDS.length)}-${generation}`,
      container: kind.container,
      devices,
      ...(idleIds.length === 0 ? {} : { idleIds }),
    };
  });
}

function take(free: Map<string, string[]>, prefix: string, amount: number): { resource: string; deviceIds: string[] }[] {
  for (const [resource, ids] of free) {
    if (resource.startsWith(prefix) && ids.length >= amount) return [{ resource, deviceIds: ids.splice(0, amount) }];
  }
  return [];
}
