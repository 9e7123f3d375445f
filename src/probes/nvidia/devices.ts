import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { normalizePciAddress, numaNodeOf, pciPathOf } from '../../host/pci/pci.ts';
import type { Device } from '../../model/device.ts';
import { childrenOf, type Element } from './document.ts';
import { instanceKey, type MigNames } from './listing.ts';
import { wordAt } from './readings.ts';

/** A GPU or instance as the document has it. */
export interface Located {
  readonly device: Device;
  readonly element: Element;
}

export interface NodeFacts {
  readonly driver?: string;
  readonly host: Pick<Host, 'sys' | 'proc' | 'dev'>;
  readonly instances: MigNames;
}

/** The GPU of one `<gpu>` element and its MIG instances. */
export function devicesOf(gpu: Element, index: number, facts: NodeFacts): readonly Located[] {
  const device = gpuOf(gpu, index, facts);
  const instances = childrenOf(gpu, 'mig_devices/mig_device').flatMap((element) => {
    const instance = instanceOf(element, device, facts);
    return instance === undefined ? [] : [{ device: instance, element }];
  });
  return [{ device, element: gpu }, ...instances];
}

function gpuOf(gpu: Element, index: number, facts: NodeFacts): Device {
  const printed = typeof gpu['@id'] === 'string' ? gpu['@id'] : wordAt(gpu, 'pci/pci_bus_id');
  const pciAddress = printed === undefined ? undefined : normalizePciAddress(printed);
  const uuid = wordAt(gpu, 'uuid');
  const minor = wordAt(gpu, 'minor_number') ?? (pciAddress === undefined ? undefined : procFacts(facts.host, pciAddress).minor);
  const [, pciDevice, pciVendor] = /^(?:0x)?([0-9a-f]{4})([0-9a-f]{4})$/i.exec(wordAt(gpu, 'pci/pci_device_id') ?? '') ?? [];
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
      numaNode: pciAddress === undefined ? undefined : numaNodeOf(facts.host.sys, pciAddress),
      model: wordAt(gpu, 'product_name'),
      serial: wordAt(gpu, 'serial'),
      driver: facts.driver,
      firmware: wordAt(gpu, 'vbios_version'),
    }),
    attributes: defined({
      index: String(index),
      minor,
      moduleId,
      pciVendor: pciVendor?.toLowerCase(),
      pciDevice: pciDevice?.toLowerCase(),
      pciPath: pciAddress === undefined ? undefined : pciPathOf(facts.host.sys, pciAddress),
      nodes: nodesOf(facts.host.dev, minor),
    }),
  };
}

function instanceOf(element: Element, parent: Device, facts: NodeFacts): Device | undefined {
  const index = wordAt(element, 'index');
  const gpuInstance = wordAt(element, 'gpu_instance_id');
  const computeInstance = wordAt(element, 'compute_instance_id');
  if (gpuInstance === undefined || computeInstance === undefined) return undefined;
  const known = facts.instances.get(instanceKey(parent.id, gpuInstance, computeInstance));
  const minor = parent.attributes?.minor;
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
    attributes: defined({
      index: index === undefined ? undefined : `${parent.attributes?.index}:${index}`,
      minor,
      gpuInstance,
      computeInstance,
      profile: known?.profile,
      pciVendor: parent.attributes?.pciVendor,
      pciDevice: parent.attributes?.pciDevice,
      pciPath: parent.attributes?.pciPath,
      nodes: [parent.attributes?.nodes, ...capabilityNodes(facts.host.proc, minor, gpuInstance, computeInstance)].join(','),
    }),
  };
}

/** A GPU that `nvidia-smi` no longer shows, from what the kernel driver still knows of it. */
export function deviceFromProc(host: Pick<Host, 'sys' | 'proc'>, pciAddress: string): Device | undefined {
  const { uuid, model, minor } = procFacts(host, pciAddress);
  if (uuid === undefined) return undefined;
  return {
    family: 'nvidia',
    id: uuid,
    kind: 'gpu',
    aliases: [pciAddress],
    vendor: 'NVIDIA',
    pciAddress,
    uuid,
    ...defined({ model, numaNode: numaNodeOf(host.sys, pciAddress) }),
    attributes: defined({ minor }),
  };
}

/** `/proc/driver/nvidia/gpus/<address>/information`, lines such as `Device Minor: 	 0`. */
function procFacts({ proc }: Pick<Host, 'proc'>, pciAddress: string): Record<'uuid' | 'model' | 'minor', string | undefined> {
  const text = proc.text(`driver/nvidia/gpus/${pciAddress}/information`) ?? '';
  const fact = (name: string, form: string): string | undefined => new RegExp(`^${name}:\\s*(${form})\\s*$`, 'im').exec(text)?.[1];
  return { uuid: fact('GPU UUID', 'GPU-[0-9a-f-]{36}'), model: fact('Model', '.+?'), minor: fact('Device Minor', '\\d+') };
}

/** Minors of the nodes of all possible instances, below `/proc`. */
export const MIG_MINORS = 'driver/nvidia-caps/mig-minors';

/** Nodes every CUDA program opens; those that are made on demand only where they are there. */
export function commonNodes(dev: Tree): readonly string[] {
  const common = ['nvidiactl', 'nvidia-uvm', 'nvidia-uvm-tools', 'nvidia-modeset'].filter((name) => dev.exists(name));
  return common.length === 0 ? ['nvidiactl', 'nvidia-uvm'] : common;
}

function nodesOf(dev: Tree, minor: string | undefined): string {
  return [...commonNodes(dev), ...(minor === undefined ? [] : [`nvidia${minor}`])].join(',');
}

/**
 * The two nodes that open a MIG instance: of its GPU instance and of its compute instance. Their minors are in one list for all
 * possible instances, and in a file for each that is there.
 */
function capabilityNodes(proc: Tree, minor: string | undefined, gpuInstance: string, computeInstance: string): readonly string[] {
  if (minor === undefined) return [];
  const minors = proc.text(MIG_MINORS) ?? '';
  return [`gi${gpuInstance}/access`, `gi${gpuInstance}/ci${computeInstance}/access`].flatMap((name) => {
    const listed = new RegExp(`^gpu${minor}/${name} (\\d+)$`, 'm').exec(minors)?.[1];
    const file = listed === undefined ? proc.text(`driver/nvidia/capabilities/gpu${minor}/mig/${name}`) : undefined;
    const capability = listed ?? /^DeviceFileMinor:\s*(\d+)\s*$/m.exec(file ?? '')?.[1];
    return capability === undefined ? [] : [`nvidia-caps/nvidia-cap${capability}`];
  });
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function defined<T extends Record<string, unknown>>(record: T): Defined<T> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as Defined<T>;
}
