import { cellAt, childrenOf, type Element, textAt } from './document.ts';

/** What `nvidia-smi -L` alone tells of a MIG instance. */
export interface MigName {
  readonly uuid: string;
  /** `1g.10gb`. */
  readonly profile: string;
}

/** By {@link instanceKey}. */
export type MigNames = ReadonlyMap<string, MigName>;

/** Names by UUID of the GPU and number of the instance on it. */
type Listing = ReadonlyMap<string, ReadonlyMap<string, MigName>>;

/**
 * `nvidia-smi -L`: `GPU 0: NAME (UUID: GPU-…)` and, indented, `  MIG 1g.10gb     Device  0: (UUID: MIG-…)`. The number of a MIG
 * line is the `index` of the instance in the document.
 */
export function parseListing(text: string): Listing {
  const gpus = new Map<string, Map<string, MigName>>();
  let current: Map<string, MigName> | undefined;
  for (const line of text.split('\n')) {
    if (/^GPU \d+:/i.test(line)) {
      current = new Map();
      const gpu = /\(UUID: (GPU-[0-9a-f-]+)\)\s*$/i.exec(line)?.[1];
      if (gpu !== undefined) gpus.set(gpu, current);
    }
    const instance = /^\s+MIG (\S+)\s+Device\s+(\d+):\s*\(UUID: (MIG-[^)\s]+)\)/i.exec(line);
    if (instance !== null) current?.set(instance[2] as string, { uuid: instance[3] as string, profile: instance[1] as string });
  }
  return gpus;
}

export function instanceKey(gpu: string, gpuInstance: string, computeInstance: string): string {
  return `${gpu}/${gpuInstance}/${computeInstance}`;
}

/** Keys of the MIG instances of one `<gpu>` element. */
export function instanceKeys(gpu: Element): readonly string[] {
  return instancesOf(gpu).map(({ key }) => key);
}

/** The listing's names by instance; what it does not name is left out. */
export function migNames(gpus: readonly Element[], listing: Listing): Map<string, MigName> {
  return new Map(
    gpus.flatMap(instancesOf).flatMap(({ key, gpu, index }) => {
      const name = listing.get(gpu)?.get(index);
      return name === undefined ? [] : [[key, name]];
    }),
  );
}

/** Whether the driver failed to tell which instances there are, and says so in their place. */
export function areInstancesUnread(gpu: Element): boolean {
  const cell = cellAt(gpu, 'mig_devices');
  return cell.kind === 'error' || (cell.kind === 'text' && cell.value.toLowerCase() !== 'none');
}

function instancesOf(gpu: Element): readonly { readonly key: string; readonly gpu: string; readonly index: string }[] {
  const uuid = textAt(gpu, 'uuid')?.trim() ?? '';
  return childrenOf(gpu, 'mig_devices/mig_device').flatMap((element) => {
    const [index, gpuInstance, computeInstance] = ['index', 'gpu_instance_id', 'compute_instance_id'].map((path) =>
      cellAt(element, path).kind === 'number' ? textAt(element, path)?.trim() : undefined,
    );
    if (gpuInstance === undefined || computeInstance === undefined) return [];
    return [{ key: instanceKey(uuid, gpuInstance, computeInstance), gpu: uuid, index: index ?? '' }];
  });
}
