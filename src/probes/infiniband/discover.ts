import { basename, dirname } from 'node:path';
import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { mayBeOnBus } from '../../host/pci/functions.ts';
import { isPciAddress, pciAddressOf } from '../../host/pci/pci.ts';
import type { BusHardware } from '../../model/declaration.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import { netdevsOf, virtualFunctionsOf } from '../kit/network.ts';
import { type PciFunction, readDirectAccess, readPciFunction } from '../kit/pcie/function.ts';

export const CLASS = 'class/infiniband';

/** Physical, virtual or scalable function; `function` when the kind is unknown. */
type FunctionKind = 'pf' | 'vf' | 'sf' | 'function';

/** Position of a device in the machine. It comes from the device's parents, never from its name, because udev may change the name. */
export interface Location extends Partial<PciFunction>, Pick<Device, 'direct'> {
  readonly kind: FunctionKind;
  /** Address of the function itself. A scalable function has none, so it gets the address of the function that carries it. */
  readonly pciAddress?: string;
  /** Number of the physical function's `virtfn` link. */
  readonly vfIndex?: number;
  /** Name on the auxiliary bus: `mlx5_core.sf.4`. */
  readonly auxiliary?: string;
  readonly sfNumber?: number;
}

const AUXILIARY = /^[A-Za-z][\w-]*(?:\.[\w-]+)+\.\d+$/;

/** Cache: for each physical function, the addresses of its virtual functions and their numbers. */
export type VirtualFunctions = Map<string, ReadonlyMap<string, number>>;

/** Finds the location of a device. `directory` is its entry in the class directory, which is a link on real machines. */
export function locate(sys: Tree, directory: string, known: VirtualFunctions): Location {
  const anchor = pciAddressOf(sys, directory) === undefined ? `${directory}/device` : directory;
  const pciAddress = pciAddressOf(sys, anchor);
  const auxiliary = auxiliaryNameOf(sys.realpath(anchor));
  if (auxiliary !== undefined && /\.sf\.\d+$/.test(auxiliary)) return scalableFunction(sys, auxiliary, pciAddress, known);
  if (pciAddress === undefined) return { kind: 'function', ...(auxiliary && { auxiliary }) };
  return { ...pciFunction(sys, pciAddress, known), ...(auxiliary && { auxiliary }) };
}

/** Returns the auxiliary device in a real path, such as `mlx5_core.sf.4` in `…/0000:08:00.0/mlx5_core.sf.4/infiniband/mlx5_4`. */
function auxiliaryNameOf(realpath: string | undefined): string | undefined {
  for (let at = realpath ?? ''; at !== '' && at !== '.' && at !== '/' && !isPciAddress(basename(at)); at = dirname(at)) {
    if (AUXILIARY.test(basename(at))) return basename(at);
  }
  return undefined;
}

function scalableFunction(sys: Tree, auxiliary: string, pciAddress: string | undefined, known: VirtualFunctions): Location {
  const sfNumber = sys.text(`bus/auxiliary/devices/${auxiliary}/sfnum`);
  const carrier = pciAddress === undefined ? undefined : pciFunction(sys, pciAddress, known);
  return {
    ...carrier,
    kind: 'sf',
    auxiliary,
    ...(sfNumber !== undefined && /^\d+$/.test(sfNumber) && { sfNumber: Number(sfNumber) }),
    ...(pciAddress && { physicalFunction: carrier?.physicalFunction ?? pciAddress }),
  };
}

function pciFunction(sys: Tree, address: string, known: VirtualFunctions): Location {
  const { physicalFunction, ...read } = readPciFunction(sys, address);
  const common = defined({ ...read, direct: readDirectAccess(sys, address, read.pciPath) });
  if (physicalFunction === undefined) return { kind: 'pf', ...common };
  const numbers = known.get(physicalFunction) ?? virtualFunctionsOf(sys, physicalFunction);
  known.set(physicalFunction, numbers);
  const vfIndex = numbers.get(address);
  return { kind: 'vf', ...common, physicalFunction, ...(vfIndex !== undefined && { vfIndex }) };
}

/**
 * Says whether a device left the class directory because a container has it. In exclusive mode each RDMA device belongs to one
 * network namespace: its PCI function keeps the driver, but other namespaces see no RDMA device below it. Source: parameter
 * `netns_mode` of ib_core; false means exclusive.
 */
export function isInOtherNamespace(sys: Tree, { pciAddress, kind }: Location): boolean {
  if (pciAddress === undefined || kind === 'sf' || sys.text('module/ib_core/parameters/netns_mode') !== 'N') return false;
  const directory = `bus/pci/devices/${pciAddress}`;
  return sys.link(`${directory}/driver`) !== undefined && sys.list(`${directory}/infiniband`).length === 0;
}

/**
 * Returns the network interface of each port of a RoCE device, keyed by port number. `gid_attrs` is not used, because most of its hundreds of
 * files fail. The map is empty when the interface is in the network namespace of a container. Soft RoCE has no device; its `parent` names
 * the interface.
 */
export function findNetdevs(sys: Tree, directory: string, ports: readonly string[]): ReadonlyMap<string, string> {
  const netdevs = netdevsOf(sys, `${directory}/device`);
  const only = netdevs.length === 0 ? sys.text(`${directory}/parent`) : netdevs[0]?.name;
  if (ports.length === 1 && netdevs.length <= 1 && only) return new Map([[ports[0] as string, only]]);
  return new Map(
    ports.flatMap((port) => {
      const all = netdevs.filter(({ devPort }) => devPort === Number(port) - 1);
      const [first, ...others] = all.length === 1 ? all : all.filter(({ represents }) => represents === undefined);
      return first === undefined || others.length > 0 ? [] : [[port, first.name] as const];
    }),
  );
}

const adapter = { kind: 'pf', maker: 'NVIDIA', vendor: '0x15b3', drivers: ['mlx5_core', 'mlx4_core'] } as const;
/** An Ethernet adapter may be one of RDMA only by its configuration. */
export const bus: readonly BusHardware[] = [
  { ...adapter, what: 'NVIDIA (Mellanox) InfiniBand adapter', classes: ['0207'] },
  { ...adapter, what: 'NVIDIA (Mellanox) Ethernet adapter', classes: ['0200'], isListedByFault: true },
  { kind: 'pf', what: 'Omni-Path adapter', vendor: '0x8086', maker: 'Intel', classes: ['0208'], drivers: ['hfi1'] },
];

/** Returns true when the bus has an adapter, or when the class directory has an entry, or exists but cannot be listed. */
export function isPresent({ sys }: Host): boolean {
  const { names, error } = sys.listing(CLASS);
  return (names === undefined ? error !== 'ENOENT' : names.length > 0) || mayBeOnBus(sys, bus);
}
