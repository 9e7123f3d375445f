import type { ClaimHardware } from '../model/claim-hardware.ts';
import { type Device, deviceKey } from '../model/device.ts';
import { addTo } from './name-conflicts.ts';

/**
 * Finds the device that a claim's hardware is. It returns a device only when all that is stated fits exactly one device. A wrong holder is
 * worse than none.
 */
export class HardwareJoin {
  readonly #devices: readonly Device[];
  readonly #atAddress = new Map<string, Device[]>();
  readonly #byDeviceFile = new Map<string, Device[]>();
  readonly #byName = new Map<string, Device[]>();

  constructor(devices: readonly Device[]) {
    this.#devices = devices;
    for (const device of devices) {
      // A scalable function has the address of the function that carries it.
      if (device.pciAddress !== undefined && device.sfNumber === undefined) addTo(this.#atAddress, device.pciAddress, device);
      for (const node of device.characterDevices ?? []) addTo(this.#byDeviceFile, node, device);
      const names = [device.uuid, device.id, ...device.aliases].filter((name) => name !== undefined);
      for (const name of new Set(names.map((one) => one.toLowerCase()))) addTo(this.#byName, name, device);
    }
  }

  has(device: Device): boolean {
    return this.#devices.includes(device);
  }

  /** `mayBe`: whether a device that the nodes fit can be the one of the claim. */
  find(hardware: ClaimHardware, mayBe: (device: Device) => boolean = () => true): Device | undefined {
    if (hardware.by === 'cdi') return this.#byNodes(hardware, mayBe) ?? this.#byAddress(hardware);
    if (hardware.uuid !== undefined) return this.#byUuid(hardware, hardware.uuid);
    if (hardware.pciAddress !== undefined) return this.#byAddress(hardware);
    if (hardware.interfaceName !== undefined) return this.#byInterface(hardware.interfaceName);
    return undefined;
  }

  /**
   * Whether the address or the nodes of a claim show that it has another device: they name another address, a part and not a whole device, or
   * nodes like those of the device and not its own. A name that fits the device is then a name of something else.
   */
  excludes(hardware: ClaimHardware, device: Device): boolean {
    if (hardware.by !== 'cdi') return false;
    if (!fitsAddress(device, hardware) || (hardware.isPartition === true && device.parent === undefined)) return true;
    const given = new Set(hardware.deviceNodes ?? []);
    const { shared, ofPart } = this.#nodesOf(device);
    return !hasNoOther(given, shared) || (hasSameKindOfNode(given, ofPart) && !ofPart.every((node) => given.has(node)));
  }

  #byUuid(hardware: ClaimHardware, uuid: string): Device | undefined {
    const named = this.#byName.get(uuid.toLowerCase()) ?? [];
    if (named.length > 0) return onlyOne(named.filter((device) => fitsAddress(device, hardware)));
    const atAddress = this.#byAddress(hardware);
    return atAddress?.uuid === undefined ? atAddress : undefined;
  }

  /** A part of a device has the address of its parent, so the address names the parent. */
  #byAddress({ pciAddress, isPartition }: ClaimHardware): Device | undefined {
    if (pciAddress === undefined || isPartition === true) return undefined;
    const there = this.#atAddress.get(pciAddress) ?? this.#byName.get(pciAddress) ?? [];
    return onlyOne(there.filter((device) => !there.some((other) => isParent(other, device))));
  }

  #byInterface(name: string): Device | undefined {
    return onlyOne(this.#devices.filter(({ netdevs = [] }) => netdevs.includes(name)));
  }

  /**
   * Only nodes that no unrelated device has distinguish devices. A part needs all nodes that its parent does not have, because it may share
   * some of them with other parts. It needs those of the parent only if it has no others: a driver may leave them out. The part is meant when
   * its nodes are given and differ from those of the parent.
   */
  #byNodes(hardware: ClaimHardware, mayBe: (device: Device) => boolean): Device | undefined {
    const given = new Set(hardware.deviceNodes ?? []);
    const touched = new Set([...given].flatMap((node) => this.#byDeviceFile.get(node) ?? []));
    const meant = [...touched].filter((device) => {
      const { shared, ofPart } = this.#nodesOf(device);
      if (device.parent === undefined) return hardware.isPartition !== true && shared.some((node) => given.has(node));
      const needed = ofPart.length > 0 ? ofPart : shared;
      return needed.length > 0 && needed.every((node) => given.has(node)) && hasNoOther(given, shared) && mayBe(device);
    });
    const exact = meant.filter((device) => !meant.some((other) => isParent(device, other) && !haveEqualNodes(device, other)));
    return onlyOne(exact.filter((device) => fitsAddress(device, hardware) && mayBe(device)));
  }

  /** The nodes that no unrelated device has. `ofPart`: those that a part has and its parent has not. `shared`: all others. */
  #nodesOf(device: Device): { readonly shared: readonly string[]; readonly ofPart: readonly string[] } {
    const relatives = (node: string): readonly Device[] => this.#byDeviceFile.get(node) ?? [];
    const own = (device.characterDevices ?? []).filter(
      (node) => hasNumber(node) && relatives(node).every((other) => areRelated(device, other)),
    );
    if (device.parent === undefined) return { shared: own, ofPart: [] };
    const isShared = (node: string): boolean => relatives(node).some((other) => isParent(other, device));
    return { shared: own.filter(isShared), ofPart: own.filter((node) => !isShared(node)) };
  }
}

/** All devices of a driver share a node without a number, such as a control node, even where there is only one device. */
const hasNumber = (node: string): boolean => /\d/.test(node.slice(node.lastIndexOf('/')));

/** Nodes of one kind differ in their numbers only. */
const formOf = (node: string): string => node.replaceAll(/\d+/g, '#');

function hasSameKindOfNode(given: ReadonlySet<string>, nodes: readonly string[]): boolean {
  const forms = new Set(nodes.map(formOf));
  return [...given].some((node) => forms.has(formOf(node)));
}

/** False when nodes of the kind of one of these are given, and none of these. */
function hasNoOther(given: ReadonlySet<string>, nodes: readonly string[]): boolean {
  return !hasSameKindOfNode(given, nodes) || nodes.some((node) => given.has(node));
}

const fitsAddress = (device: Device, { pciAddress }: ClaimHardware): boolean =>
  pciAddress === undefined || device.pciAddress === undefined || device.pciAddress === pciAddress;

const isParent = (device: Device, part: Device): boolean => device.family === part.family && device.id === part.parent;

const rootOf = (device: Device): string => deviceKey({ family: device.family, id: device.parent ?? device.id });
const areRelated = (a: Device, b: Device): boolean => rootOf(a) === rootOf(b);

function haveEqualNodes(a: Device, b: Device): boolean {
  const [first, second] = [a, b].map(({ characterDevices = [] }) => new Set(characterDevices));
  return first?.size === second?.size && [...(first ?? [])].every((node) => second?.has(node));
}

const onlyOne = (devices: readonly Device[]): Device | undefined => (devices.length === 1 ? devices[0] : undefined);
