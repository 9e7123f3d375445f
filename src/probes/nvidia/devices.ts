import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { DeviceAccess } from '../../model/access.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { ClaimName } from '../../model/claim-hardware.ts';
import { defined } from '../../model/defined.ts';
import type { Device, PeerMemory } from '../../model/device.ts';
import type { FallbackNames } from '../kit/identities.ts';
import { readPciFunction } from '../kit/pcie/function.ts';
import { DRIVER, type ProcFacts, procFacts } from './hardware.ts';
import type { GpuIdentity, GpuSample, MigSample } from './sample.ts';

type Trees = Pick<Host, 'sys' | 'proc' | 'dev'>;

/** Facts that all devices of the node share. */
export interface NodeFacts {
  readonly driver: string | undefined;
  readonly trees: Trees;
  readonly peerMemory?: PeerMemory | undefined;
  /** Absolute paths of the device nodes that every program opens. */
  readonly commonNodes: readonly string[];
  /** Text of the minor numbers of all possible instances, which is large; empty when there is no instance. */
  readonly migMinors: string;
}

export function nodeFactsOf(trees: Trees, driver: string | undefined, hasInstances: boolean): NodeFacts {
  const common = ['nvidiactl', 'nvidia-uvm', 'nvidia-uvm-tools', 'nvidia-modeset'].filter((name) => trees.dev.exists(name));
  return {
    driver,
    trees,
    // Nodes that the driver creates on demand are included only if they exist.
    commonNodes: (common.length === 0 ? ['nvidiactl', 'nvidia-uvm'] : common).map((name) => `/dev/${name}`),
    migMinors: (hasInstances ? trees.proc.text('driver/nvidia-caps/mig-minors') : undefined) ?? '',
  };
}

/** What the kernel knows of the PCI function of a GPU. */
export type GpuFunction = { readonly [K in 'pciPath' | 'numaNode' | 'direct']: Device[K] | undefined };

export interface GpuName {
  /** Position of the GPU in the driver's order. */
  readonly index: number;
  readonly id: string;
}

/** The names that a GPU can have. */
export function namesOf({ identity: { uuid, busId } = {} }: GpuSample): Parameters<FallbackNames['of']>[0][number] {
  const address = busId === undefined ? undefined : normalizePciAddress(busId);
  return { identity: uuid, wanted: uuid, fallback: address ?? busId ?? uuid ?? 'unknown' };
}

/** Builds the device of a GPU. */
export function gpuDevice(
  { identity = {}, peers = [] }: GpuSample,
  { index, id }: GpuName,
  facts: NodeFacts & { functionOf(address: string): GpuFunction },
): Device {
  const pciAddress = identity.busId === undefined ? undefined : normalizePciAddress(identity.busId);
  const minor = numberOf(identity.minor ?? (pciAddress === undefined ? undefined : procFacts(facts.trees, pciAddress).minor));
  const [, pciDevice, pciVendor] = /^(?:0x)?([0-9a-f]{4})([0-9a-f]{4})$/i.exec(identity.pciDeviceId ?? '') ?? [];
  return {
    family: 'nvidia',
    id,
    kind: 'gpu',
    aliases: [...new Set([pciAddress, identity.busId?.toLowerCase()].filter((name) => name !== undefined && name !== id) as string[])],
    vendor: 'NVIDIA',
    identity: identity.uuid ?? null,
    ...defined({
      pciAddress,
      uuid: identity.uuid,
      ...(pciAddress === undefined ? {} : facts.functionOf(pciAddress)),
      model: identity.name,
      serial: identity.serial,
      driver: 'nvidia',
      driverVersion: facts.driver,
      firmware: identity.vbios,
      peers: peers.length === 0 ? undefined : peers.map(({ uuid, links }) => ({ device: uuid, links, path: `NV${links}` })),
      minor,
      moduleId: numberOf(identity.moduleId),
      location: locationOf(identity),
      pciVendor: pciVendor && `0x${pciVendor.toLowerCase()}`,
      pciDevice: pciDevice && `0x${pciDevice.toLowerCase()}`,
      peerMemory: facts.peerMemory,
    }),
    index: String(index),
    characterDevices: [...facts.commonNodes, ...(minor === undefined ? [] : [`/dev/nvidia${minor}`])],
  };
}

/** Parts of the place of a board, in the order in which a technician needs them. */
export const PLACE = ['chassis', 'slot', 'tray', 'host'] as const;

/** Undefined where the platform does not tell it. */
function locationOf(identity: GpuIdentity): string | undefined {
  const parts = PLACE.flatMap((part) => (identity[part] === undefined ? [] : [`${part} ${identity[part]}`]));
  return parts.length === 0 ? undefined : parts.join(', ');
}

/** Builds the device of a MIG instance. Without a UUID, its id has the form that drivers before 470 use. */
export function instanceDevice(instance: MigSample, parent: Device, facts: NodeFacts): Device {
  const { gpuInstance, computeInstance, name } = instance;
  const oldForm = `MIG-${parent.id}/${gpuInstance}/${computeInstance}`;
  return {
    family: 'nvidia',
    id: name?.uuid ?? oldForm,
    kind: 'mig',
    aliases: [oldForm],
    parent: parent.id,
    vendor: 'NVIDIA',
    ...defined({
      pciAddress: parent.pciAddress,
      identity: name?.uuid,
      uuid: name?.uuid,
      numaNode: parent.numaNode,
      model: parent.model,
      driver: parent.driver,
      driverVersion: parent.driverVersion,
      index: instance.index === undefined ? undefined : `${parent.index}:${instance.index}`,
      minor: parent.minor,
      pciVendor: parent.pciVendor,
      pciDevice: parent.pciDevice,
      pciPath: parent.pciPath,
      direct: parent.direct,
      peerMemory: parent.peerMemory,
      profile: name?.profile,
      gpuInstance: numberOf(gpuInstance),
      computeInstance: numberOf(computeInstance),
    }),
    characterDevices: [...(parent.characterDevices ?? []), ...capabilityNodes(facts, parent.minor, gpuInstance, computeInstance)],
  };
}

/**
 * Returns the two nodes that a MIG instance needs: one for its GPU instance and one for its compute instance. One list holds the minors
 * of all possible instances. Each existing instance also has a file with its minor.
 */
function capabilityNodes(facts: NodeFacts, minor: number | undefined, gpuInstance: string, computeInstance: string): readonly string[] {
  if (minor === undefined) return [];
  return [`gi${gpuInstance}/access`, `gi${gpuInstance}/ci${computeInstance}/access`].flatMap((name) => {
    const listed = new RegExp(`^gpu${minor}/${name} (\\d+)$`, 'm').exec(facts.migMinors)?.[1];
    const file = listed === undefined ? facts.trees.proc.text(`driver/nvidia/capabilities/gpu${minor}/mig/${name}`) : undefined;
    const capability = listed ?? /^DeviceFileMinor:\s*(\d+)\s*$/m.exec(file ?? '')?.[1];
    return capability === undefined ? [] : [`/dev/nvidia-caps/nvidia-cap${capability}`];
  });
}

/**
 * Returns what a container needs to use a GPU or MIG instance. It gives device nodes in addition to the variable, so the container
 * keeps its device rules after a rewrite of its cgroup. The node has the minor number, not the index. A MIG instance needs the node of
 * its GPU and the nodes of its two capabilities. The CDI name is that of nvidia-ctk. Names of the kind `k8s.device-plugin.nvidia.com/gpu`
 * need files that NVIDIA's own plugin writes, and that plugin does not run together with this one.
 */
export function access({ id, uuid, index, characterDevices = [] }: Device): DeviceAccess {
  // With an old driver, a MIG instance has a name but no UUID.
  const name = uuid ?? (id.startsWith('MIG-') ? id : undefined);
  const cdiName = uuid ?? index;
  return {
    deviceNodes: characterDevices.map((path) => ({ path, permissions: 'rw' })),
    visible: {
      variable: 'NVIDIA_VISIBLE_DEVICES',
      directory: '/var/run/nvidia-container-devices',
      ids: defined({ uuid: name, index }),
    },
    cdiDevices: cdiName === undefined ? [] : [`nvidia.com/gpu=${cdiName}`],
  };
}

const numberOf = (text: string | undefined): number | undefined => (text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined);

/**
 * Builds the device of a GPU that the driver's tools do not show, from the facts of the kernel driver. Without a UUID its name is its
 * address, until one is read.
 */
export function unshownDevice(sys: Tree, pciAddress: string, { uuid, model, minor, isListed }: ProcFacts): Device {
  const { pciVendor, pciDevice, pciPath, numaNode, driver } = readPciFunction(sys, pciAddress);
  return {
    family: 'nvidia',
    id: uuid ?? pciAddress,
    kind: 'gpu',
    aliases: uuid === undefined ? [] : [pciAddress],
    vendor: 'NVIDIA',
    pciAddress,
    identity: uuid ?? null,
    ...defined({ uuid, model, numaNode, driver: isListed ? DRIVER : driver, minor: numberOf(minor), pciVendor, pciDevice, pciPath }),
  };
}

/** Whether the device had only its address as a name, and a device with the same address has another name now. */
export const isNamedIn =
  (now: readonly Device[]) =>
  ({ id, pciAddress }: Device): boolean =>
    id === pciAddress && now.some((device) => device.parent === undefined && device.pciAddress === pciAddress);

/**
 * Resolves the ids of NVIDIA's plugins and of similar plugins:
 * `GPU-…::N`, `MIG-…::N` (replicas of time slicing and MPS) · `MIG-GPU-…/gi/ci` (drivers before 470) · `nvidia0`, `nvidia0/gi1`,
 * `nvidia0/vgpu3` (GKE, by minor number) · `all` (WSL) · `tegra` (the one GPU of a Jetson) · PCI addresses in any spelling (passthrough) · DRA `gpu-<minor>` of
 * driver `gpu.nvidia.com`, `gpu-vfio-<minor>` for a virtual machine · the IOMMU group of a GPU that was handed over. Its name of a MIG device (`gpu-0-mig-1g5gb-19-4`) has the profile and the start of the memory. Only a privileged user can ask
 * the driver for that start, and an instance of the same profile may be another pod's: the name names no instance.
 */
export const resolve: Resolve = ({ resource, deviceId, claim }, devices) => {
  if (claim !== undefined) {
    const [, vfio, minor] = (claim.driver === 'gpu.nvidia.com' && /^gpu-(vfio-)?(\d+)$/.exec(claim.device)) || [];
    const named = minor === undefined ? [] : byMinor(Number(minor), undefined, devices);
    return ids(vfio === undefined ? named : named.filter(({ unserved }) => unserved === 'handed-over'));
  }
  if (/^\d+$/.test(deviceId)) return ids(ofGroup(deviceId, devices));
  const plain = deviceId.replace(/::\d+$/, '');
  const named = devices.filter((device) => [device.id, ...device.aliases].some((name) => name.toLowerCase() === plain.toLowerCase()));
  if (named.length > 0) return ids(named);
  const ofGpu = /^MIG-(GPU-[0-9a-f-]+)\/\d+\/\d+$/i.exec(plain)?.[1]?.toLowerCase();
  if (ofGpu !== undefined) return ids(devices.filter((device) => device.uuid?.toLowerCase() === ofGpu && !isSplit(device, devices)));
  const gke = /^nvidia(\d+)(?:\/gi(\d+))?(?:\/vgpu\d+)?$/.exec(plain);
  if (gke !== null) return ids(byMinor(Number(gke[1]), gke[2], devices));
  const address = normalizePciAddress(plain);
  if (address !== undefined) return ids(devices.filter((device) => device.kind === 'gpu' && device.pciAddress === address));
  const gpus = devices.filter((device) => device.kind === 'gpu');
  if (plain === 'all' && resource.startsWith('nvidia.com/')) return ids(gpus);
  if (plain === 'tegra' && gpus.length === 1) return ids(gpus);
  return [];
};

/** The driver's name of a MIG device has the start of its memory, which the device does not report: only whole GPUs have a name here. */
export function claimNames({ kind, minor }: Device): readonly ClaimName[] {
  return kind === 'gpu' && minor !== undefined ? [{ driver: 'gpu.nvidia.com', device: `gpu-${minor}` }] : [];
}

/** The plugins for virtual machines name a GPU by its IOMMU group. Other numbers are an index, which may belong to another GPU. */
export const ownsNumbers = (resource: string): boolean => /^nvidia\.com\/(?!gpu\b|mig-)/.test(resource);

const ofGroup = (group: string, devices: readonly Device[]): readonly Device[] =>
  devices.filter(({ unserved, characterDevices }) => unserved === 'handed-over' && characterDevices?.includes(`/dev/vfio/${group}`));

const ids = (devices: readonly Device[]): readonly string[] => devices.map((device) => device.id);

function byMinor(minor: number, gpuInstance: string | undefined, devices: readonly Device[]): readonly Device[] {
  const kind = gpuInstance === undefined ? 'gpu' : 'mig';
  return devices.filter(
    (device) => device.kind === kind && device.minor === minor && (gpuInstance === undefined || device.gpuInstance === Number(gpuInstance)),
  );
}

/** The driver lists no instance of a lost GPU. The holder of one that was never listed then holds a part of the GPU. */
const isSplit = ({ id }: Device, devices: readonly Device[]): boolean => devices.some(({ parent }) => parent === id);

/** First driver whose open kernel modules export memory as dma-buf, and first kernel whose verbs import it. */
const [FIRST_DRIVER, FIRST_KERNEL] = [515, 5.012];
const MODULES = ['nvidia_peermem', 'nv_peer_mem'];

/**
 * How the driver lets network adapters reach the memory of its GPUs: by the module nvidia_peermem, or by dma-buf, which only its open kernel
 * modules offer. Source: NVIDIA GPU Operator, GPUDirect RDMA. Undefined when nothing could be read.
 */
export function readPeerMemory({ sys, proc }: Pick<Host, 'sys' | 'proc'>): PeerMemory | undefined {
  const module = peerModuleOf(sys);
  if (module !== undefined) return { can: true, why: `the module ${module} is loaded`, from: `/sys/module/${module}` };
  const text = proc.text('driver/nvidia/version');
  const driver = /Kernel Module[^\n]*?\s(\d+)(?:\.\d+)+\s/.exec(text ?? '')?.[1];
  if (text === undefined || driver === undefined) return undefined;
  const from = '/proc/driver/nvidia/version';
  if (!/Open Kernel Module/.test(text))
    return { can: false, why: 'nvidia_peermem is not loaded, and proprietary kernel modules offer no dma-buf', from };
  if (Number(driver) < FIRST_DRIVER)
    return { can: false, why: `nvidia_peermem is not loaded, and driver ${driver} offers no dma-buf`, from };
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(proc.text('sys/kernel/osrelease') ?? '') ?? [];
  if (major === undefined || minor === undefined)
    return { why: `driver ${driver} offers dma-buf, but the version of the kernel is unknown`, from };
  const can = Number(major) + Number(minor) / 1_000 >= FIRST_KERNEL;
  return {
    can,
    why: can ? `driver ${driver} with open kernel modules offers dma-buf` : `kernel ${major}.${minor} has no dma-buf for verbs`,
    from,
  };
}

/** The loaded module for peer memory. */
export const peerModuleOf = (sys: Tree): string | undefined => MODULES.find((name) => sys.exists(`module/${name}`));
