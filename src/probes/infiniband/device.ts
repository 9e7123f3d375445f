import type { Tree } from '../../host/fs/tree.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { CharDevices } from './char-devices.ts';
import { CLASS, type Location } from './discover.ts';
import { parseGuid, parseNodeType } from './parse.ts';
import type { PortFacts } from './port.ts';

export const FAMILY = 'infiniband';

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

/** Reads all facts of a device except its ports. */
export function readHcaFacts(sys: Tree, name: string, location: Location, charDevices: CharDevices): Omit<HcaFacts, 'ports'> {
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
export function readGuid(sys: Tree, name: string): Pick<HcaFacts, 'nodeGuid' | 'hasNoGuid'> {
  const text = sys.text(`${CLASS}/${name}/node_guid`);
  const nodeGuid = parseGuid(text ?? '');
  return nodeGuid === undefined ? { hasNoGuid: text !== undefined && text !== '' } : { nodeGuid };
}

/** Returns the port numbers of a device in numeric order. */
export function portsOf(sys: Tree, name: string): readonly string[] {
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
    linkLayers: undefinedIfEmpty([...new Set(ports.flatMap((port) => port.linkLayer ?? []))]),
    netdevs: undefinedIfEmpty(ports.flatMap((port) => port.netdev ?? [])),
    characterDevices: undefinedIfEmpty(nodes.map((node) => `/dev/infiniband/${node}`)),
  });
}

function undefinedIfEmpty(list: readonly string[]): readonly string[] | undefined {
  return list.length === 0 ? undefined : list;
}
