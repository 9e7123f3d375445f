import { normalizePciAddress } from '../../host/pci.ts';
import type { Device } from '../../model/device.ts';
import { childrenOf, type Element } from './document.ts';
import { wordAt } from './readings.ts';

/** A GPU or instance as the document has it. */
export interface Located {
  readonly device: Device;
  readonly element: Element;
}

export interface NodeFacts {
  readonly driver?: string;
  numaNode(pciAddress: string): number | undefined;
  /** UUIDs of MIG instances by GPU UUID and index, from `nvidia-smi -L`: the document does not tell them. */
  readonly migUuids: ReadonlyMap<string, ReadonlyMap<number, { readonly uuid: string; readonly profile: string }>>;
}

/** The GPU of one `<gpu>` element and its MIG instances. */
export function devicesOf(gpu: Element, facts: NodeFacts): readonly Located[] {
  const device = gpuOf(gpu, facts);
  const instances = childrenOf(gpu, 'mig_devices/mig_device').flatMap((element) => {
    const instance = instanceOf(element, device, facts);
    return instance === undefined ? [] : [{ device: instance, element }];
  });
  return [{ device, element: gpu }, ...instances];
}

function gpuOf(gpu: Element, facts: NodeFacts): Device {
  const printed = typeof gpu['@id'] === 'string' ? gpu['@id'] : wordAt(gpu, 'pci/pci_bus_id');
  const pciAddress = printed === undefined ? undefined : normalizePciAddress(printed);
  const uuid = wordAt(gpu, 'uuid');
  const minor = wordAt(gpu, 'minor_number');
  const moduleId = wordAt(gpu, 'platformInfo/module_id') ?? wordAt(gpu, 'gpu_module_id');
  return {
    family: 'nvidia',
    id: uuid ?? pciAddress ?? printed ?? 'unknown',
    kind: 'gpu',
    aliases: [...new Set([pciAddress, printed?.toLowerCase()].filter((name) => name !== undefined))],
    vendor: 'NVIDIA',
    ...defined({
      pciAddress,
      uuid,
      numaNode: pciAddress === undefined ? undefined : facts.numaNode(pciAddress),
      model: wordAt(gpu, 'product_name'),
      serial: wordAt(gpu, 'serial'),
      driver: facts.driver,
      firmware: wordAt(gpu, 'vbios_version'),
    }),
    attributes: defined({ minor, moduleId }),
  };
}

function instanceOf(element: Element, parent: Device, facts: NodeFacts): Device | undefined {
  const index = wordAt(element, 'index');
  const gpuInstance = wordAt(element, 'gpu_instance_id');
  const computeInstance = wordAt(element, 'compute_instance_id');
  if (gpuInstance === undefined || computeInstance === undefined) return undefined;
  const known = facts.migUuids.get(parent.id)?.get(Number(index));
  const oldForm = `MIG-${parent.id}/${gpuInstance}/${computeInstance}`;
  return {
    family: 'nvidia',
    id: known?.uuid ?? oldForm,
    kind: 'mig',
    aliases: [oldForm],
    parent: parent.id,
    vendor: 'NVIDIA',
    ...defined({
      pciAddress: parent.pciAddress,
      uuid: known?.uuid,
      numaNode: parent.numaNode,
      model: parent.model,
      driver: parent.driver,
    }),
    attributes: defined({ minor: parent.attributes?.minor, gpuInstance, computeInstance, index, profile: known?.profile }),
  };
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function defined<T extends Record<string, unknown>>(record: T): Defined<T> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as Defined<T>;
}

/**
 * `nvidia-smi -L`: `GPU 0: NAME (UUID: GPU-…)` and, indented, `  MIG 1g.10gb     Device  0: (UUID: MIG-…)`. The number of a MIG
 * line is the `index` of the instance in the document.
 */
export function parseListing(text: string): NodeFacts['migUuids'] {
  const gpus = new Map<string, Map<number, { uuid: string; profile: string }>>();
  let current: Map<number, { uuid: string; profile: string }> | undefined;
  for (const line of text.split('\n')) {
    const gpu = /^GPU \d+:.*\(UUID: (GPU-[0-9a-f-]+)\)/i.exec(line)?.[1];
    if (gpu !== undefined) {
      current = new Map();
      gpus.set(gpu, current);
    }
    const instance = /^\s+MIG (\S+)\s+Device\s+(\d+):\s*\(UUID: (MIG-[^)\s]+)\)/i.exec(line);
    if (instance !== null) current?.set(Number(instance[2]), { uuid: instance[3] as string, profile: instance[1] as string });
  }
  return gpus;
}
