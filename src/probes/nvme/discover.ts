import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { mayBeOnBus } from '../../host/pci/functions.ts';
import { isPciAddress, vfioNodeOf } from '../../host/pci/pci.ts';
import { isAsleepState, isSuspended } from '../../host/pci/pcie.ts';
import type { DeviceReport, Problem } from '../../model/collection.ts';
import type { BusHardware } from '../../model/declaration.ts';
import type { Device } from '../../model/device.ts';
import type { Reading } from '../../model/metric.ts';
import { DeviceFiles } from '../kit/device-files.ts';
import type { LastIdentities } from '../kit/identities.ts';
import type { Pace } from '../kit/pace.ts';
import { readPciFunction } from '../kit/pcie/function.ts';
import { pcieFindings } from '../kit/pcie/health.ts';
import { PcieReader, pcieReadings } from '../kit/pcie/pcie.ts';
import type { ProblemCode } from './declaration.ts';
import { metrics } from './metrics.ts';

export const CLASS = 'class/nvme';
const SUBSYSTEMS = 'class/nvme-subsystem';

/** One controller of the driver `nvme`. */
export interface ControllerPlace {
  /** `nvme0`. The kernel gives the number in the order of discovery. */
  readonly name: string;
  readonly directory: string;
  /** Distinguishes it from a later controller of the same name. */
  readonly identity: string;
  /** PCI address, or `<subsystem name>:<controller id>`. */
  readonly id: string;
  readonly address?: string;
  /** Names in its directory. */
  readonly names: readonly string[];
}

/** A way to a namespace: through one controller. */
interface NamespacePath {
  readonly controller: ControllerPlace;
  /** Directory of the hidden disk of the path, `nvme0c1n1`. Absent when the namespace has only this way. */
  readonly directory?: string;
}

/** One namespace: the disk that programs use. */
export interface NamespacePlace {
  /** `nvme0n1`. Under multipath the first number is that of the subsystem, not of a controller. */
  readonly name: string;
  readonly directory: string;
  /** Ordered by the ids of the controllers. */
  readonly paths: readonly NamespacePath[];
  /** Name of the character device for commands without file system, `ng0n1`; absent on older kernels. */
  readonly generic?: string;
}

export interface Layout {
  readonly controllers: readonly ControllerPlace[];
  readonly namespaces: readonly NamespacePlace[];
  readonly problems: readonly Problem[];
  /** False when a controller or namespace could not be named. */
  readonly isComplete: boolean;
}

/** Controllers that only tell where others are. They have no namespace. NVM Express Base Specification, well-known name. */
const DISCOVERY = 'nqn.2014-08.org.nvmexpress.discovery';

/** Finds controllers and namespaces. `names` lists `/sys/class/nvme`. Reads only facts that the kernel has in memory. */
export function findLayout(sys: Tree, names: readonly string[]): Layout {
  const problems: Problem[] = [];
  const controllers: ControllerPlace[] = [];
  for (const name of names.filter((each) => /^nvme\d+$/.test(each))) {
    const controller = findController(sys, name);
    if (controller === 'none') continue;
    if (controller === 'unknown') problems.push(problem('identity-unknown', `/sys/${CLASS}/${name} has no address and no subsystem name`));
    else controllers.push(controller);
  }
  controllers.sort((a, b) => (a.id < b.id ? -1 : 1));
  const { namespaces, orphans } = findNamespaces(sys, controllers);
  for (const head of orphans) problems.push(problem('head-unknown', `the namespace ${head} has paths and is in no subsystem`));
  return { controllers, namespaces, problems, isComplete: problems.length === 0 };
}

const problem = (code: ProblemCode, message: string): Problem => ({ code, message });

function findController(sys: Tree, name: string): ControllerPlace | 'none' | 'unknown' {
  const directory = `${CLASS}/${name}`;
  const identity = sys.identity(directory);
  // It was removed after the list was read.
  if (identity === undefined) return 'none';
  const files = new DeviceFiles(sys, directory);
  const nqn = files.text('subsysnqn');
  if (files.text('cntrltype') === 'discovery' || nqn === DISCOVERY) return 'none';
  const place = { name, directory, identity, names: sys.list(directory) };
  const address = files.text('address')?.toLowerCase();
  // The address of a drive on another bus has another form.
  if (address !== undefined && isPciAddress(address)) {
    // The same directory by a path that names the PCI function, so that a hanging read concerns all devices of the function.
    const byFunction = `bus/pci/devices/${address}/nvme/${name}`;
    return { ...place, id: address, address, ...(sys.identity(byFunction) === identity && { directory: byFunction }) };
  }
  const number = files.text('cntlid');
  return nqn === undefined || number === undefined ? 'unknown' : { ...place, id: `${nqn}:${number}` };
}

function findNamespaces(
  sys: Tree,
  controllers: readonly ControllerPlace[],
): { readonly namespaces: readonly NamespacePlace[]; readonly orphans: readonly string[] } {
  const namespaces: NamespacePlace[] = [];
  const heads = new Map<string, NamespacePath[]>();
  for (const controller of controllers) {
    for (const name of controller.names) {
      if (/^nvme\d+n\d+$/.test(name))
        namespaces.push({ name, directory: `${controller.directory}/${name}`, paths: [{ controller }], ...genericOf(sys, name) });
      const path = /^nvme(\d+)c\d+n(\d+)$/.exec(name);
      if (path === null) continue;
      const head = `nvme${path[1]}n${path[2]}`;
      heads.set(head, [...(heads.get(head) ?? []), { controller, directory: `${controller.directory}/${name}` }]);
    }
  }
  const directories = heads.size === 0 ? new Map<string, string>() : headDirectories(sys);
  const orphans: string[] = [];
  for (const [name, paths] of heads) {
    const directory = directories.get(name);
    if (directory === undefined) orphans.push(name);
    else namespaces.push({ name, directory, paths, ...genericOf(sys, name) });
  }
  return { namespaces, orphans };
}

function genericOf(sys: Tree, name: string): { readonly generic?: string } {
  const generic = name.replace('nvme', 'ng');
  return sys.identity(`class/nvme-generic/${generic}`) === undefined ? {} : { generic };
}

/** Directories of the namespaces that have several ways, keyed by name. */
function headDirectories(sys: Tree): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const subsystem of sys.list(SUBSYSTEMS))
    for (const name of sys.list(`${SUBSYSTEMS}/${subsystem}`))
      if (/^nvme\d+n\d+$/.test(name)) found.set(name, `${SUBSYSTEMS}/${subsystem}/${name}`);
  return found;
}

/** Text that changes when a controller or namespace comes or goes. It costs two lists and one look at each controller. */
export function layoutKey(sys: Tree, names: readonly string[]): string {
  const disks = sys.list('class/block').filter((name) => name.startsWith('nvme'));
  return [...names.map((name) => `${name}=${sys.identity(`${CLASS}/${name}`)}`), ...disks].join(' ');
}

/** Functions that a virtual machine or another user-space driver uses. */
export const VFIO = 'bus/pci/drivers/vfio-pci';
/** Class of an NVMe controller. PCI Code and ID Assignment Specification: 01 storage, 08 non-volatile memory. */
const NVME_CLASS = /^0x0108/;

/** PCI addresses of the NVMe controllers that `vfio-pci` has. The class is a record of the kernel, so the read wakes nothing. */
export function passedThrough(sys: Tree): readonly string[] {
  return sys.list(VFIO).filter((name) => isPciAddress(name) && NVME_CLASS.test(sys.text(`bus/pci/devices/${name}/class`) ?? ''));
}

/** A drive that a virtual machine has. Its driver is not the kernel's, so only the PCI function can be read. */
export class PassedThrough {
  readonly address: string;
  readonly device: Device;
  readonly #sys: Tree;
  readonly #pcie: PcieReader;

  constructor(sys: Tree, address: string, identities: LastIdentities) {
    this.address = address;
    this.#sys = sys;
    this.#pcie = new PcieReader(sys, address);
    this.device = { ...deviceOf(sys, address), ...identities.of(address, undefined) };
  }

  report(pace: Pace): DeviceReport {
    const directory = `bus/pci/devices/${this.address}`;
    const text = (file: string): string | undefined => this.#sys.reread(`${directory}/${file}`).text?.trim();
    const isAsleep = isSuspended(text('power/runtime_status')) || isAsleepState(text('power_state'));
    const asleep: Reading = { metric: metrics.asleep.name, value: isAsleep ? 1 : 0 };
    // An idle function of vfio-pci sleeps, and a read of its link would wake it.
    if (isAsleep) return { device: this.device, read: { readings: [asleep], findings: [] } };
    const sample = this.#pcie.read(pace);
    return { device: this.device, read: { readings: [asleep, ...pcieReadings(sample)], findings: pcieFindings(sample) } };
  }

  close(): void {
    this.#sys.forget(`bus/pci/devices/${this.address}`);
  }
}

function deviceOf(sys: Tree, address: string): Device {
  const vfioNode = vfioNodeOf(sys, address);
  const { physicalFunction: _, ...pci } = readPciFunction(sys, address);
  const nodes = vfioNode === undefined ? {} : { characterDevices: ['/dev/vfio/vfio', vfioNode] };
  return { family: 'nvme', id: address, kind: 'controller', aliases: [], ...pci, driver: 'vfio-pci', ...nodes };
}

export const bus: readonly BusHardware[] = [{ what: 'NVMe controller', classes: ['0108'], kind: 'controller', drivers: ['nvme'] }];

/** Returns true when the kernel has a controller, or cannot list its controllers, or when the bus has one. */
export function isPresent({ sys }: Host): boolean {
  const { names, error } = sys.listing(CLASS);
  if (names === undefined ? error !== 'ENOENT' : names.length > 0) return true;
  return mayBeOnBus(sys, bus);
}
