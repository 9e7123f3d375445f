import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { normalizePciAddress, numaNodeOf, pciPathOf } from '../../host/pci/pci.ts';
import type { DeviceAccess } from '../../model/access.ts';
import { defined } from '../../model/defined.ts';
import type { Device, DirectAccess, PeerMemory } from '../../model/device.ts';
import type { FallbackNames } from '../kit/identities.ts';
import { readPciFunction } from '../kit/pcie/function.ts';
import { DRIVER, type ProcFacts, procFacts } from './hardware.ts';
import type { GpuSample, MigSample } from './sample.ts';

type Trees = Pick<Host, 'sys' | 'proc' | 'dev'>;

/** Facts that all devices of the node share. */
export interface NodeFacts {
  readonly driver: string | undefined;
  readonly trees: Trees;
  /** Of a PCI function with this path. */
  readonly directOf?: (address: string, path: string | undefined) => DirectAccess | undefined;
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
export function gpuDevice({ identity = {}, peers = [] }: GpuSample, { index, id }: GpuName, facts: NodeFacts): Device {
  const { sys } = facts.trees;
  const pciAddress = identity.busId === undefined ? undefined : normalizePciAddress(identity.busId);
  const pciPath = pciAddress === undefined ? undefined : pciPathOf(sys, pciAddress);
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
      numaNode: pciAddress === undefined ? undefined : numaNodeOf(sys, pciAddress),
      model: identity.name,
      serial: identity.serial,
      driver: 'nvidia',
      driverVersion: facts.driver,
      firmware: identity.vbios,
      peers: peers.length === 0 ? undefined : peers.map(({ uuid, links }) => ({ device: uuid, links, path: `NV${links}` })),
      minor,
      moduleId: numberOf(identity.moduleId),
      pciVendor: pciVendor && `0x${pciVendor.toLowerCase()}`,
      pciDevice: pciDevice && `0x${pciDevice.toLowerCase()}`,
      pciPath,
      direct: pciAddress === undefined ? undefined : facts.directOf?.(pciAddress, pciPath),
      peerMemory: facts.peerMemory,
    }),
    index: String(index),
    characterDevices: [...facts.commonNodes, ...(minor === undefined ? [] : [`/dev/nvidia${minor}`])],
  };
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
      ids: { ...(name === undefined ? {} : { uuid: name }), ...(index === undefined ? {} : { index }) },
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

/** Leaves out the devices that had only their address as a name, of which a device with the same address has another name now. */
export const withoutNamed = (before: readonly Device[], now: readonly Device[]): readonly Device[] =>
  before.filter(
    ({ id, pciAddress }) => id !== pciAddress || !now.some((device) => device.parent === undefined && device.pciAddress === pciAddress),
  );
