import { basename } from 'node:path';
import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { isPciAddress, vfioNodeOf } from '../../host/pci/pci.ts';
import type { BusHardware } from '../../model/declaration.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import { netdevsOf, virtualFunctionsOf } from '../kit/network.ts';
import { readPciFunction } from '../kit/pcie/function.ts';
import type { NetdevOptions } from './declaration.ts';

export const PCI = 'bus/pci/devices';

/** Drivers that hand a function to a program in user space: DPDK, or a virtual machine. */
const USER_SPACE_DRIVERS: ReadonlySet<string> = new Set(['vfio-pci', 'mlx5_vfio_pci', 'ice_vfio_pci', 'uio_pci_generic', 'igb_uio']);

/** `pf`: can have virtual functions. `vf`: is one. `function`: the rest. */
type FunctionKind = 'pf' | 'vf' | 'function';

/** A network function on the PCI bus. Its facts rarely change. */
export interface NetworkFunction {
  readonly address: string;
  readonly kind: FunctionKind;
  /** Of a virtual function: PCI address of its physical function. */
  readonly physicalFunction?: string;
  /** Number among the virtual functions of the physical function. */
  readonly number?: number;
  readonly driver?: string;
  readonly pciVendor?: string;
  readonly pciDevice?: string;
  readonly numaNode?: number;
  readonly pciPath?: string;
  /** Address that the maker gave to its first port. Absent while the host does not have the interface, or when another one is set. */
  readonly permanentMac?: string;
  /** Interfaces of its ports. Empty while a container or a program in user space has them. Representors are not among them. */
  readonly interfaces: readonly string[];
  /** Representors on the switch in the adapter, keyed by the number of the virtual function. */
  readonly representors: ReadonlyMap<number, string>;
  readonly rdmaDevices: readonly string[];
  /** Its RDMA device is, or may be, in the network namespace of a container. */
  readonly hasHiddenRdma: boolean;
  /** Node of VFIO; only while a driver of user space has it. */
  readonly vfioNode?: string;
  /** It has counters of PCIe errors. */
  readonly hasErrorCounters: boolean;
  /** Virtual functions that it has and can have. */
  readonly virtualFunctions: number;
  readonly maxVirtualFunctions?: number;
}

export interface Survey {
  /** Keyed by PCI address, in the order of addresses. */
  readonly functions: ReadonlyMap<string, NetworkFunction>;
  /** Functions whose class could not be read. */
  readonly unreadable: readonly string[];
}

/** Finds all network functions. `classes` keeps the class of each known address, which never changes. */
export function survey(sys: Tree, addresses: readonly string[], classes: Map<string, boolean>): Survey {
  const unreadable: string[] = [];
  const present = new Set(addresses);
  for (const known of classes.keys()) if (!present.has(known)) classes.delete(known);
  for (const address of addresses.filter((each) => isPciAddress(each) && !classes.has(each))) {
    const { text, error } = sys.read(`${PCI}/${address}/class`);
    if (text !== undefined && /^0x[0-9a-f]{6}$/.test(text.trim())) classes.set(address, isNetworkClass(text));
    else if (error !== 'ENOENT') unreadable.push(address);
  }
  const own = addresses.filter((address) => classes.get(address) === true);
  const entries = new Map(own.map((address) => [address, sys.list(`${PCI}/${address}`)]));
  const numbers = new Map([...entries].map(([address, names]) => [address, virtualFunctionsOf(sys, address, names)]));
  const isExclusive = sys.text('module/ib_core/parameters/netns_mode') === 'N';
  const functions = new Map<string, NetworkFunction>();
  for (const [address, names] of entries) {
    const parent = names.includes('physfn') ? sys.link(`${PCI}/${address}/physfn`) : undefined;
    const physicalFunction = parent === undefined ? undefined : basename(parent);
    const number = numbers.get(physicalFunction ?? '')?.get(address);
    const isInExclusiveCard = isExclusive && entries.get(physicalFunction ?? '')?.includes('infiniband') === true;
    const virtualFunctions = numbers.get(address)?.size ?? 0;
    functions.set(address, {
      ...networkFunction(sys, address, names, isInExclusiveCard),
      kind: kindOf(physicalFunction, virtualFunctions, names),
      ...(physicalFunction !== undefined && { physicalFunction }),
      ...(number !== undefined && { number }),
      virtualFunctions,
    });
  }
  return { functions, unreadable };
}

function kindOf(physicalFunction: string | undefined, virtualFunctions: number, names: readonly string[]): FunctionKind {
  if (physicalFunction !== undefined) return 'vf';
  return virtualFunctions > 0 || names.includes('sriov_totalvfs') ? 'pf' : 'function';
}

/** Class 02 of the PCI-SIG: Ethernet, InfiniBand and other network controllers. */
const isNetworkClass = (text: string): boolean => text.startsWith('0x02');

function networkFunction(
  sys: Tree,
  address: string,
  entries: readonly string[],
  isInExclusiveCard: boolean,
): Omit<NetworkFunction, 'kind' | 'virtualFunctions'> {
  const directory = `${PCI}/${address}`;
  const { driver, pciVendor, pciDevice, numaNode, pciPath } = readPciFunction(sys, address);
  const isInUserSpace = driver !== undefined && USER_SPACE_DRIVERS.has(driver);
  const vfioNode = isInUserSpace ? vfioNodeOf(sys, address) : undefined;
  const total = entries.includes('sriov_totalvfs') ? sys.text(`${directory}/sriov_totalvfs`) : undefined;
  const max = /^\d{1,5}$/.exec(total ?? '')?.[0];
  const rdmaDevices = entries.includes('infiniband') ? sys.list(`${directory}/infiniband`) : [];
  return defined({
    address,
    driver,
    pciVendor,
    pciDevice,
    numaNode,
    pciPath,
    ...interfacesOf(sys, entries.includes('net') ? directory : undefined),
    rdmaDevices,
    hasHiddenRdma: isInExclusiveCard && rdmaDevices.length === 0 && driver !== undefined && !isInUserSpace,
    hasErrorCounters: entries.some((name) => name.startsWith('aer_dev_')),
    vfioNode,
    ...(max !== undefined && { maxVirtualFunctions: Number(max) }),
  });
}

function interfacesOf(sys: Tree, directory: string | undefined): Pick<NetworkFunction, 'interfaces' | 'representors' | 'permanentMac'> {
  const all = directory === undefined ? [] : netdevsOf(sys, directory);
  const ports = all.filter(({ represents }) => represents === undefined);
  const first = ports.filter(({ devPort }) => devPort === 0);
  const permanentMac = first.map(({ name }) => permanentMacOf(sys, `${directory}/net/${name}`)).find((mac) => mac !== undefined);
  return {
    interfaces: ports.map(({ name }) => name),
    representors: new Map(all.flatMap(({ name, represents }) => (typeof represents === 'number' ? [[represents, name] as const] : []))),
    ...(permanentMac !== undefined && { permanentMac }),
  };
}

/** Of the interface of the first port. `addr_assign_type` 0 is NET_ADDR_PERM. Source: Linux Documentation/ABI/testing/sysfs-class-net. */
function permanentMacOf(sys: Tree, directory: string): string | undefined {
  const mac = sys.text(`${directory}/address`)?.toLowerCase();
  const isPermanent = sys.text(`${directory}/addr_assign_type`) === '0';
  return isPermanent && mac !== undefined && /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/.test(mac) ? mac : undefined;
}

/**
 * Whether a function is one that this family reports. A function with an RDMA device is reported by the family of RDMA devices: one
 * function is one device, and its bytes count once. `hadFunctions`: it had virtual functions. Their number changes by way of 0, and the
 * physical function is not missing then.
 */
export function isReported(
  fn: NetworkFunction,
  options: { readonly all: boolean; readonly 'rdma-functions': boolean },
  hadFunctions = false,
): boolean {
  if (!options['rdma-functions'] && (fn.rdmaDevices.length > 0 || fn.hasHiddenRdma)) return false;
  if (options.all || fn.kind === 'vf' || fn.virtualFunctions > 0 || hadFunctions) return true;
  return fn.driver !== undefined && USER_SPACE_DRIVERS.has(fn.driver);
}

/** Addresses of the functions that drivers of user space have. */
function userSpaceFunctions(sys: Tree): readonly string[] {
  return [...USER_SPACE_DRIVERS].flatMap((driver) => sys.list(`bus/pci/drivers/${driver}`).filter(isPciAddress));
}

/** Whether a function is a network controller. */
const isNetworkFunction = (sys: Tree, address: string): boolean => isNetworkClass(sys.text(`${PCI}/${address}/class`) ?? '');

/** PCI-SIG vendor ids of the makers of network adapters with virtual functions. */
const VENDORS: Readonly<Record<string, string>> = {
  '0x8086': 'Intel',
  '0x15b3': 'NVIDIA',
  '0x14e4': 'Broadcom',
  '0x1dd8': 'AMD',
  '0x1924': 'AMD',
  '0x1077': 'Marvell',
  '0x177d': 'Marvell',
  '0x1425': 'Chelsio',
  '0x19e5': 'Huawei',
  '0x1137': 'Cisco',
  '0x1d0f': 'Amazon',
  '0x1ae0': 'Google',
  '0x1af4': 'Red Hat',
  '0x19ee': 'Netronome',
};

/** Every machine has network ports, so only those that were known, or whose start failed, are listed without a driver. */
export const bus: readonly BusHardware[] = Object.entries(VENDORS)
  .filter(([vendor]) => vendor !== '0x15b3')
  .map(([vendor, maker]) => ({ what: 'Network adapter', vendor, maker, classes: ['0200'], kind: 'function', isListedByFault: true }));

/**
 * Returns true when SR-IOV is in use, when a program in user space has a network function, or when all functions are wanted. Every machine
 * has a network port, so a port alone is not enough. The check follows links, and reads the class of functions of user space only.
 */
export function isPresent({ sys }: Host, options?: Pick<NetdevOptions, 'all'>): boolean {
  if (options?.all === true) return true;
  const hasFunctions = sys.list('class/net').some((name) => sys.link(`class/net/${name}/device/virtfn0`) !== undefined);
  return hasFunctions || userSpaceFunctions(sys).some((address) => isNetworkFunction(sys, address));
}

const FAMILY = 'netdev';

/** Builds the device of the common model. Its id is the PCI address, which is the id of SR-IOV device plugins. */
export function deviceOf(fn: NetworkFunction, isParentReported: boolean, identity: Pick<Device, 'identity'>): Device {
  const { address, kind, physicalFunction, number, driver, pciVendor, pciDevice, numaNode, pciPath, interfaces, vfioNode } = fn;
  const vendor = VENDORS[pciVendor ?? ''];
  return defined({
    family: FAMILY,
    id: address,
    ...identity,
    kind,
    aliases: [],
    pciAddress: address,
    ...(physicalFunction !== undefined && isParentReported && { parent: physicalFunction }),
    numaNode,
    vendor,
    driver,
    pciVendor,
    pciDevice,
    pciPath,
    physicalFunction,
    vfIndex: number,
    ...(interfaces.length > 0 && { netdevs: interfaces }),
    ...(vfioNode !== undefined && { characterDevices: [vfioNode, '/dev/vfio/vfio'] }),
  });
}
