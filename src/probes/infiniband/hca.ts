import type { Tree } from '../../host/fs/tree.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { memoizedBy, type Readings } from '../../model/readings.ts';
import { sameListWhenEqual } from '../../model/step-cache.ts';
import { AdapterSensors } from '../kit/adapter-sensors.ts';
import type { Pace } from '../kit/pace.ts';
import { PcieReader, type PcieSample, pcieReadings } from '../kit/pcie/pcie.ts';
import { ReadingWriter } from '../kit/reading-writer.ts';
import { CounterFiles, type Counters, NO_COUNTERS } from './counter-files.ts';
import { parseGuid, parseNodeType } from './counters.ts';
import type { InfinibandOptions } from './declaration.ts';
import { CLASS, findNetdevs, type Location } from './discover.ts';
import { metrics } from './metrics.ts';
import { Port, type PortFacts, type PortMemory, type PortSample } from './port.ts';
import { PRODUCTS } from './products.ts';

const FAMILY = 'infiniband';

/** Facts of a device that rarely change. They are read when the device appears, and then at a long interval. */
export interface HcaFacts {
  readonly name: string;
  readonly location: Location;
  readonly charDevices: CharDevices;
  readonly hcaType?: string;
  readonly boardId?: string;
  readonly firmware?: string;
  readonly hardwareRevision?: string;
  readonly nodeGuid?: string;
  /** The file of the GUID can be read and holds none: drivers of some adapters have only zeros. */
  readonly hasNoGuid?: boolean;
  /** All ports and functions of one card have the same value. */
  readonly systemImageGuid?: string;
  readonly nodeType?: string;
  /** Facts of each port, keyed by port number, in numeric order. */
  readonly ports: ReadonlyMap<string, PortFacts>;
}

/** PCI-SIG vendor ids of the makers of RDMA devices. */
const VENDORS: Readonly<Record<string, string>> = {
  '0x15b3': 'NVIDIA',
  '0x8086': 'Intel',
  '0x1d0f': 'Amazon',
  '0x14e4': 'Broadcom',
  '0x1414': 'Microsoft',
  '0x1425': 'Chelsio',
  '0x1fc1': 'QLogic',
  '0x434e': 'Cornelis Networks',
  '0x19e5': 'Huawei',
  '0x1ded': 'Alibaba',
};

const MAX_TEXT_LENGTH = 128;

/**
 * Adapters on boards of eight GPUs, by which the fabric manager reaches the NVSwitches of the board. Ids and driver are those of other adapters. Its
 * four functions have active ports. Seen on boards HGX B200 ("ConnectX-7 mezz internal for Nvidia Umbriel system") and HGX B300.
 */
const INTERNAL_BOARDS: ReadonlySet<string | undefined> = new Set(['MT_0000001121', 'NVD0000000079']);

/** Reads all facts of a device except its ports. */
function readHcaFacts(sys: Tree, name: string, location: Location, charDevices: CharDevices): Omit<HcaFacts, 'ports'> {
  const text = (file: string): string | undefined => sys.text(`${CLASS}/${name}/${file}`)?.slice(0, MAX_TEXT_LENGTH) || undefined;
  return defined({
    name,
    location,
    charDevices,
    hcaType: text('hca_type'),
    boardId: text('board_id'),
    firmware: text('fw_ver'),
    hardwareRevision: text('hw_rev'),
    ...readGuid(sys, name),
    systemImageGuid: parseGuid(text('sys_image_guid') ?? ''),
    nodeType: parseNodeType(text('node_type') ?? ''),
  });
}

/** Reads the GUID of a device. */
function readGuid(sys: Tree, name: string): Pick<HcaFacts, 'nodeGuid' | 'hasNoGuid'> {
  const text = sys.text(`${CLASS}/${name}/node_guid`);
  const nodeGuid = parseGuid(text ?? '');
  return nodeGuid === undefined ? { hasNoGuid: text !== undefined && text !== '' } : { nodeGuid };
}

/** Returns the port numbers of a device in numeric order. */
function portsOf(sys: Tree, name: string): readonly string[] {
  const ports = sys.list(`${CLASS}/${name}/ports`).filter((port) => /^[1-9]\d{0,3}$/.test(port));
  return ports.sort((a, b) => Number(a) - Number(b));
}

/**
 * A node GUID alone may be used twice, and an address alone belongs to any card in the slot. The GUID of a virtual or scalable function is a
 * setting, so it is identified by its place on the card. An adapter without a GUID has only its place: the address, or the name. Null: the
 * GUID cannot be read.
 */
function identityOf({ location, ...facts }: HcaFacts, parent: HcaFacts | undefined): string | null | undefined {
  const { kind, pciAddress, auxiliary } = location;
  const isPart = kind === 'vf' || kind === 'sf';
  if (isPart && parent === undefined) return [pciAddress, auxiliary].join(' ');
  const { nodeGuid, hasNoGuid } = isPart && parent !== undefined ? parent : facts;
  if (nodeGuid === undefined && hasNoGuid !== true) return null;
  return [nodeGuid, pciAddress, auxiliary].filter((part) => part !== undefined).join(' ') || undefined;
}

/** Builds the device of the common model. `parent` has the facts of its physical function, if that is visible. */
export function deviceOf(facts: HcaFacts, parent: HcaFacts | undefined, hasRdmaCm: boolean): Device {
  const { location, charDevices } = facts;
  const ports = [...facts.ports.values()];
  const nodes = [...charDevices.uverbs, ...charDevices.umad, ...charDevices.issm, ...(hasRdmaCm ? ['rdma_cm'] : [])];
  const ownAddress = location.kind === 'sf' ? undefined : location.pciAddress;
  return defined({
    family: FAMILY,
    id: facts.name,
    identity: identityOf(facts, parent),
    kind: location.kind,
    aliases: [ownAddress, location.auxiliary, ...charDevices.uverbs].filter((alias) => alias !== undefined),
    parent: parent?.name,
    pciAddress: location.pciAddress,
    numaNode: location.numaNode,
    model: facts.hcaType,
    product: PRODUCTS[facts.hcaType ?? ''],
    vendor: VENDORS[location.pciVendor ?? ''],
    uuid: facts.nodeGuid,
    driver: location.driver,
    firmware: facts.firmware,
    pciVendor: location.pciVendor,
    pciDevice: location.pciDevice,
    pciPath: location.pciPath,
    direct: location.direct,
    physicalFunction: location.physicalFunction,
    vfIndex: location.vfIndex,
    sfNumber: location.sfNumber,
    isInternal: INTERNAL_BOARDS.has(facts.boardId) ? (true as const) : undefined,
    linkLayers: undefinedIfEmpty([...new Set(ports.flatMap((port) => port.linkLayer ?? []))]),
    netdevs: undefinedIfEmpty(ports.flatMap((port) => port.netdev ?? [])),
    characterDevices: undefinedIfEmpty(nodes.map((node) => `/dev/infiniband/${node}`)),
  });
}

function undefinedIfEmpty(list: readonly string[]): readonly string[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** Character devices of one RDMA device, as names below `/dev/infiniband`. */
interface CharDevices {
  readonly uverbs: readonly string[];
  readonly umad: readonly string[];
  readonly issm: readonly string[];
}

export const NO_CHAR_DEVICES: CharDevices = { uverbs: [], umad: [], issm: [] };

/**
 * Returns the character devices of each RDMA device, keyed by its name. Source: `ibdev` files of the classes infiniband_verbs and
 * infiniband_mad. The kernel lists a name before it creates the files, so `ibdev` may not exist yet.
 */
export function findCharDevices(sys: Tree): ReadonlyMap<string, CharDevices> {
  const found = new Map<string, Record<keyof CharDevices, string[]>>();
  for (const directory of ['class/infiniband_verbs', 'class/infiniband_mad']) {
    for (const name of sys.list(directory)) {
      const kind = /^(uverbs|umad|issm)\d+$/.exec(name)?.[1] as keyof CharDevices | undefined;
      const device = kind && sys.text(`${directory}/${name}/ibdev`);
      if (kind === undefined || !device) continue;
      const entry = found.get(device) ?? { uverbs: [], umad: [], issm: [] };
      found.set(device, entry);
      entry[kind].push(name);
    }
  }
  return found;
}

/** Result of one read of one device. */
export interface HcaSample {
  readonly readings: Readings;
  readonly facts: HcaFacts;
  readonly ports: readonly PortSample[];
  readonly device: Counters;
  /** Undefined when the function has no link of its own. */
  readonly pcie: PcieSample | undefined;
  /** About the temperatures of the adapter and its modules; absent of a part of an adapter. */
  readonly sensors?: readonly Finding[] | undefined;
  /** True while the device is in the network namespace of a container. It exists, but its files cannot be read. */
  readonly isInOtherNamespace: boolean;
}

const infoReadings = memoizedBy((facts: HcaFacts): readonly Reading[] => {
  const labels = {
    board_id: facts.boardId ?? '',
    node_guid: facts.nodeGuid ?? '',
    sys_image_guid: facts.systemImageGuid ?? '',
    node_type: facts.nodeType ?? '',
    hardware_revision: facts.hardwareRevision ?? '',
  };
  return [{ metric: metrics.info.name, labels, value: 1 }];
});

/** What is known of a device before its first read. */
interface HcaSettings {
  readonly name: string;
  readonly identity: string;
  readonly location: Location;
  readonly options: InfinibandOptions;
  /** Keyed by port number. It outlives the device: without it, a faulty port would look uncabled after a reset. */
  readonly memories: Map<string, PortMemory>;
}

/** One device from the time it appears until it disappears. */
export class Hca {
  readonly name: string;
  /** Identity of the device's directory. */
  readonly identity: string;
  readonly location: Location;
  readonly #sys: Tree;
  readonly #options: InfinibandOptions;
  readonly #memories: Map<string, PortMemory>;
  readonly #files: CounterFiles;
  #nodeGuid: string | undefined;
  #ports: ReadonlyMap<string, Port> = new Map();
  #facts: HcaFacts;
  #pcie: PcieReader | undefined;
  #sensors: AdapterSensors | undefined;
  readonly #writer = new ReadingWriter();
  #portSamples: readonly PortSample[] = [];

  constructor(sys: Tree, { name, identity, location, options, memories }: HcaSettings, charDevices: CharDevices) {
    this.#sys = sys;
    this.name = name;
    this.identity = identity;
    this.location = location;
    this.#options = options;
    this.#memories = memories;
    this.#files = new CounterFiles(sys, location.driver, options['hw-counters'] ? [['device', `${this.directory}/hw_counters`]] : []);
    this.#facts = this.#readFacts(charDevices);
  }

  get directory(): string {
    return `${CLASS}/${this.name}`;
  }

  /** Reads the facts that rarely change, and lists the ports and counters. */
  readFacts(charDevices: CharDevices): void {
    this.#facts = this.#readFacts(charDevices);
  }

  read(pace: Pace): HcaSample {
    // A read that failed, as while the device hangs, must not leave the device without an identity until the next listing.
    if (this.#facts.nodeGuid === undefined && this.#facts.hasNoGuid !== true) {
      this.#facts = { ...this.#facts, ...readGuid(this.#sys, this.name) };
      this.#nodeGuid = this.#facts.nodeGuid;
    }
    const pcie = this.#readPcie(pace);
    const writer = this.#writer;
    writer.addAll(infoReadings(this.#facts));
    if (pcie?.link.isAsleep === true) {
      const sample = this.#emptySample(writer);
      this.#writeSums(sample);
      writer.addAll(pcieReadings(pcie));
      return { ...sample, pcie, readings: writer.end() };
    }
    const ports = this.#kept(Array.from(this.#ports.values(), (port) => port.read(pace, writer)));
    const device = this.#files.read(pace, writer);
    this.#writeSums({ ports, device });
    if (pcie !== undefined) writer.addAll(pcieReadings(pcie));
    const sensors = this.#readSensors(pace);
    if (sensors !== undefined) writer.addAll(sensors.readings);
    return { facts: this.#facts, ports, device, pcie, sensors: sensors?.findings, isInOtherNamespace: false, readings: writer.end() };
  }

  /** Returns a sample without any read, for a device in the network namespace of a container. */
  sampleInOtherNamespace(): HcaSample {
    const readings = this.#writer.addAll(infoReadings(this.#facts)).end();
    return { ...this.#emptySample(), readings, isInOtherNamespace: true };
  }

  #emptySample(writer?: ReadingWriter): Omit<HcaSample, 'readings'> {
    const ports = this.#kept(Array.from(this.#ports.values(), (port) => port.emptySample(writer)));
    return { facts: this.#facts, ports, device: NO_COUNTERS, pcie: undefined, isInOtherNamespace: false };
  }

  #kept(ports: readonly PortSample[]): readonly PortSample[] {
    this.#portSamples = sameListWhenEqual(this.#portSamples, ports);
    return this.#portSamples;
  }

  #writeSums({ ports, device }: Pick<HcaSample, 'ports' | 'device'>): void {
    const all = [device, ...ports.map(({ counters }) => counters)];
    this.#writer.add(
      metrics.unreadableFiles.name,
      all.reduce((sum, { unreadable }) => sum + unreadable, 0),
    );
    this.#writer.add(metrics.unmappedCounters.name, new Set(all.flatMap(({ unused }) => unused)).size);
  }

  #readFacts(charDevices: CharDevices): HcaFacts {
    const names = portsOf(this.#sys, this.name);
    const netdevs = findNetdevs(this.#sys, this.directory, names);
    const portOf = (port: string): Port =>
      this.#ports.get(port) ??
      new Port(this.#sys, { directory: this.directory, driver: this.location.driver, port }, this.#options, this.#memories);
    this.#ports = new Map(names.map((port) => [port, portOf(port)]));
    const ports = new Map([...this.#ports].map(([name, port]) => [name, port.readFacts(netdevs.get(name))]));
    this.#files.list();
    const read = readHcaFacts(this.#sys, this.name, this.location, charDevices);
    // It cannot change while the device exists, and without it the agent does not know which device this is.
    const nodeGuid = read.nodeGuid ?? this.#nodeGuid;
    this.#nodeGuid = nodeGuid;
    return { ...read, ...defined({ nodeGuid }), ports };
  }

  #readSensors(pace: Pace): ReturnType<AdapterSensors['read']> | undefined {
    const { kind, pciAddress } = this.location;
    if (kind !== 'pf' || pciAddress === undefined) return undefined;
    this.#sensors ??= new AdapterSensors(this.#sys, pciAddress);
    return this.#sensors.read(pace);
  }

  #readPcie(pace: Pace): PcieSample | undefined {
    const { kind, pciAddress } = this.location;
    // Virtual and scalable functions report the link of their physical function, or no link.
    if (kind !== 'pf' || pciAddress === undefined) return undefined;
    this.#pcie ??= new PcieReader(this.#sys, pciAddress);
    return this.#pcie.read(pace);
  }
}
