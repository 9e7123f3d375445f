import type { ClaimHardware } from '../model/claim-hardware.ts';
import { type Device, deviceKey } from '../model/device.ts';
import { addTo } from './lists.ts';

/**
 * Finds the device that a claim's hardware is. It returns a device only when all that is stated fits exactly one device. A wrong holder is
 * worse than none.
 */
export class HardwareJoin {
  readonly #devices: readonly Device[];
  readonly #atAddress = new Map<string, Device[]>();
  readonly #atNode = new Map<string, Device[]>();
  readonly #byName = new Map<string, Device[]>();

  constructor(devices: readonly Device[]) {
    this.#devices = devices;
    for (const device of devices) {
      // A scalable function has the address of the function that carries it.
      if (device.pciAddress !== undefined && device.sfNumber === undefined) addTo(this.#atAddress, device.pciAddress, device);
      for (const node of device.characterDevices ?? []) addTo(this.#atNode, node, device);
      const names = [device.uuid, device.id, ...device.aliases].filter((name) => name !== undefined);
      for (const name of new Set(names.map((one) => one.toLowerCase()))) addTo(this.#byName, name, device);
    }
  }

  find(hardware: ClaimHardware): Device | undefined {
    if (hardware.by === 'cdi') return this.#byNodes(hardware) ?? this.#byAddress(hardware);
    if (hardware.uuid !== undefined) return this.#byUuid(hardware, hardware.uuid);
    if (hardware.pciAddress !== undefined) return this.#byAddress(hardware);
    if (hardware.interfaceName !== undefined) return this.#byInterface(hardware.interfaceName);
    return undefined;
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
   * Only nodes that no unrelated device has distinguish devices. A part needs all of its nodes, because it shares some with the parent and
   * with the other parts. The part is meant when its nodes are given and differ from those of the parent.
   */
  #byNodes(hardware: ClaimHardware): Device | undefined {
    const given = new Set(hardware.deviceNodes ?? []);
    const touched = new Set([...given].flatMap((node) => this.#atNode.get(node) ?? []));
    const meant = [...touched].filter((device) => {
      const own = this.#ownNodes(device);
      if (device.parent === undefined) return hardware.isPartition !== true && own.some((node) => given.has(node));
      return own.length > 0 && own.every((node) => given.has(node));
    });
    const exact = meant.filter((device) => !meant.some((other) => isParent(device, other) && !haveEqualNodes(device, other)));
    return onlyOne(exact.filter((device) => fitsAddress(device, hardware)));
  }

  #ownNodes(device: Device): readonly string[] {
    const isOwn = (node: string): boolean => (this.#atNode.get(node) ?? []).every((other) => areRelated(device, other));
    return (device.characterDevices ?? []).filter((node) => hasNumber(node) && isOwn(node));
  }
}

/** All devices of a driver share a node without a number, such as a control node, even where there is only one device. */
const hasNumber = (node: string): boolean => /\d/.test(node.slice(node.lastIndexOf('/')));

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
