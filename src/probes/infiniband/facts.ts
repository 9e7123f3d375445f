import type { Tree } from '../../host/fs/tree.ts';
import type { KeptGroup } from '../../host/kept-group.ts';
import { pciPathOf } from '../../host/pci/pci.ts';
import { TextFiles } from '../../host/text-files.ts';
import type { Device } from '../../model/device.ts';
import type { Reading } from '../../model/metric.ts';
import type { CharDevices } from './char-devices.ts';
import { CLASS, findNetdevs, type Place } from './discover.ts';
import { metrics } from './metrics.ts';
import { parseGuid, parseNodeType } from './parse.ts';
import type { PortFacts } from './port.ts';

export const FAMILY = 'infiniband';

/** All of a device that changes rarely or never: read when the device appears, and at a slow pace after that. */
export interface HcaFacts {
  readonly name: string;
  readonly place: Place;
  readonly charDevices: CharDevices;
  /** From the root complex down; absent for a device that is no PCI function. */
  readonly pciPath?: string;
  readonly hcaType?: string;
  readonly boardId?: string;
  readonly firmware?: string;
  readonly hardwareRevision?: string;
  readonly nodeGuid?: string;
  /** Equal for all ports and functions of one card. */
  readonly systemImageGuid?: string;
  readonly nodeType?: string;
  /** Port number to facts, in order of the numbers. */
  readonly ports: ReadonlyMap<string, PortFacts>;
}

/** PCI-SIG vendor ids of those who make RDMA devices. */
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

const FILES = ['hca_type', 'board_id', 'fw_ver', 'hw_rev', 'node_guid', 'sys_image_guid', 'node_type'] as const;
const LONGEST_TEXT = 128;

/** Reads the facts of one device; the same object as long as they are the same. */
export class FactsReader {
  readonly #sys: Tree;
  readonly #name: string;
  readonly #place: Place;
  readonly #directory: string;
  readonly #files: TextFiles;
  readonly #pciPath: string | undefined;
  #facts: HcaFacts | undefined;

  /** `files`: those of the device, given up when its directory changes. */
  constructor(sys: Tree, files: KeptGroup, name: string, place: Place) {
    this.#sys = sys;
    this.#name = name;
    this.#place = place;
    this.#directory = `${CLASS}/${name}`;
    this.#files = new TextFiles(files, this.#directory, FILES);
    // Another path would be that of another device.
    this.#pciPath = place.pciAddress === undefined ? undefined : pciPathOf(sys, place.pciAddress);
  }

  /** `factsOf` reads those of a port, whose network interface may be known. */
  read(charDevices: CharDevices, factsOf: (port: string, netdev: string | undefined) => PortFacts): HcaFacts {
    const names = this.#sys
      .list(`${this.#directory}/ports`)
      .filter((port) => /^[1-9]\d{0,3}$/.test(port))
      .sort((a, b) => Number(a) - Number(b));
    const netdevs = findNetdevs(this.#sys, this.#directory, names);
    const ports = new Map(names.map((port) => [port, factsOf(port, netdevs.get(port))]));
    const isOther = this.#files.read();
    const before = this.#facts;
    const isSame = before !== undefined && !isOther && areSamePorts(before.ports, ports) && areSameNodes(before.charDevices, charDevices);
    if (!isSame) this.#facts = this.#made(charDevices, ports);
    return this.#facts as HcaFacts;
  }

  #made(charDevices: CharDevices, ports: HcaFacts['ports']): HcaFacts {
    const texts = this.#files.texts().map((text) => text?.trim().slice(0, LONGEST_TEXT) || undefined);
    const [hcaType, boardId, firmware, hardwareRevision, nodeGuid, systemImageGuid, nodeType] = texts;
    return dropUndefined({
      name: this.#name,
      place: this.#place,
      charDevices,
      pciPath: this.#pciPath,
      hcaType,
      boardId,
      firmware,
      hardwareRevision,
      nodeGuid: parseGuid(nodeGuid ?? ''),
      systemImageGuid: parseGuid(systemImageGuid ?? ''),
      nodeType: parseNodeType(nodeType ?? ''),
      ports,
    });
  }
}

function areSamePorts(a: HcaFacts['ports'], b: HcaFacts['ports']): boolean {
  if (a.size !== b.size) return false;
  for (const [port, facts] of a) if (b.get(port) !== facts) return false;
  return true;
}

function areSameNodes(a: CharDevices, b: CharDevices): boolean {
  return a === b || (areSameNames(a.uverbs, b.uverbs) && areSameNames(a.umad, b.umad) && areSameNames(a.issm, b.issm));
}

function areSameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, at) => name === b[at]);
}

/** The device as the rest of the program sees it. `parent` is the name of its physical function, where that is visible. */
export function deviceOf(facts: HcaFacts, parent: string | undefined, hasRdmaCm: boolean): Device {
  const { place, charDevices } = facts;
  const ownAddress = place.kind === 'sf' ? undefined : place.pciAddress;
  return dropUndefined({
    family: FAMILY,
    id: facts.name,
    kind: place.kind,
    aliases: [ownAddress, place.auxiliary, ...charDevices.uverbs].filter((alias) => alias !== undefined),
    parent,
    pciAddress: place.pciAddress,
    numaNode: place.numaNode,
    model: facts.hcaType,
    vendor: VENDORS[place.pciVendor ?? ''],
    uuid: facts.nodeGuid,
    driver: place.driver,
    firmware: facts.firmware,
    attributes: attributesOf(facts, hasRdmaCm),
  });
}

function attributesOf(facts: HcaFacts, hasRdmaCm: boolean): Readonly<Record<string, string>> {
  const { place, charDevices } = facts;
  const netdevs = [...facts.ports.values()].flatMap((port) => port.netdev ?? []);
  const all: Readonly<Record<string, string>> = {
    uverbs: charDevices.uverbs.join(','),
    umad: charDevices.umad.join(','),
    issm: charDevices.issm.join(','),
    rdmaCm: hasRdmaCm ? 'rdma_cm' : '',
    netdevs: netdevs.join(','),
    auxiliary: place.auxiliary ?? '',
    sfNumber: place.sfNumber ?? '',
    vfIndex: place.vfIndex === undefined ? '' : String(place.vfIndex),
    physicalFunction: place.physicalFunction ?? '',
    pciPath: facts.pciPath ?? '',
    systemImageGuid: facts.systemImageGuid ?? '',
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
}

export function infoReading(facts: HcaFacts): Reading {
  const labels = {
    board_id: facts.boardId ?? '',
    node_guid: facts.nodeGuid ?? '',
    sys_image_guid: facts.systemImageGuid ?? '',
    node_type: facts.nodeType ?? '',
    hardware_revision: facts.hardwareRevision ?? '',
  };
  return { metric: metrics.info.name, labels, value: 1 };
}

type Optional<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

function dropUndefined<T extends object>(value: T): Optional<T> {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as Optional<T>;
}
