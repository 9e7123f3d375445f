import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { FallbackNames } from '../kit/identities.ts';
import type { ControllerFacts } from './controller.ts';
import type { ControllerPlace, NamespacePlace } from './discover.ts';
import type { NamespaceFacts } from './namespace.ts';

/** A controller and its facts. */
export interface ControllerDevice {
  readonly place: ControllerPlace;
  readonly facts: ControllerFacts;
}

/** A namespace and its facts. The controllers are those of its paths, in the same order. */
export interface NamespaceDevice {
  readonly place: NamespacePlace;
  readonly facts: NamespaceFacts;
  readonly controllers: readonly ControllerDevice[];
}

/** A drive in one machine: its serial number is unique among the drives of its model. */
const driveOf = ({ model, serial }: ControllerFacts): string | undefined =>
  model === undefined || serial === undefined ? undefined : `${model} ${serial}`;

/** A pod that holds a controller gets its namespaces, too. */
export function controllerDevice({ place, facts }: ControllerDevice, namespaces: readonly NamespacePlace[]): Device {
  const { id, name, address } = place;
  const own = namespaces.filter(({ paths }) => paths.some(({ controller }) => controller.id === id));
  return defined({
    family: 'nvme',
    id,
    identity: controllerIdentity(facts),
    kind: 'controller',
    aliases: [name],
    driver: 'nvme',
    index: name.slice('nvme'.length),
    characterDevices: [`/dev/${name}`, ...own.flatMap(nodesOf)],
    pciAddress: address,
    ...identityOf(facts),
    pciVendor: facts.pciVendor,
    pciDevice: facts.pciDevice,
    pciPath: facts.pciPath,
  });
}

/** A drive with two ports has two controllers. */
export function controllerIdentity(facts: ControllerFacts): string | null {
  const drive = driveOf(facts);
  return drive === undefined ? null : `${drive} ${facts.number ?? ''}`.trim();
}

/** The ids that some drives give to their namespaces are the same for all drives of a model. */
function namespaceIdentity({ facts, controllers }: NamespaceDevice): string | null {
  const drive = controllers.map((controller) => driveOf(controller.facts)).find((each) => each !== undefined);
  return drive === undefined ? null : [drive, `n${facts.number ?? '?'}`, facts.wwid ?? facts.nguid ?? facts.eui ?? ''].join(' ').trim();
}

/** The names that a namespace can have. */
export function namesOf(namespace: NamespaceDevice): Parameters<FallbackNames['of']>[0][number] {
  const { wwid } = namespace.facts;
  return { identity: namespaceIdentity(namespace), wanted: isStable(wwid) ? wwid : undefined, fallback: localId(namespace) };
}

/** `isUnique`: no other namespace has the same unique id. */
export function namespaceDevice({ place, facts, controllers }: NamespaceDevice, id: string, isUnique: boolean): Device {
  const [first] = controllers;
  const uuid = facts.uuid ?? facts.nguid;
  return {
    family: 'nvme',
    id,
    identity: namespaceIdentity({ place, facts, controllers }),
    kind: 'namespace',
    aliases: aliasesOf({ place, facts, controllers }, isUnique).filter((alias) => alias !== id),
    characterDevices: nodesOf(place),
    ...(first !== undefined && { parent: first.place.id, ...identityOf(first.facts) }),
    ...(isUnique && uuid !== undefined && { uuid }),
    // With several paths no function is the only one.
    ...(controllers.length === 1 && first?.place.address !== undefined && { pciAddress: first.place.address }),
  };
}

/** Ids that the drive gives to exactly one namespace of the world. Other texts of the kernel are long and made of names. */
function isStable(wwid: string | undefined): wwid is string {
  return wwid !== undefined && /^(?:eui|uuid)\.[0-9a-f-]{16,36}$/.test(wwid) && !/^\w+\.[0-]+$/.test(wwid);
}

/** Name of the namespace by its first controller. The number of the namespace is part of the disk's name when the drive tells none. */
function localId({ place, facts, controllers }: NamespaceDevice): string {
  const number = facts.number ?? /\d+$/.exec(place.name)?.[0];
  return `${controllers[0]?.place.id ?? place.name}-n${number}`;
}

/** Names below `/dev`, `/dev/disk/by-id` and `/dev/disk/by-path`. Source of the latter: systemd rules.d/60-persistent-storage.rules. */
function aliasesOf({ place, facts, controllers }: NamespaceDevice, isUnique: boolean): readonly string[] {
  const { wwid, nguid, uuid, eui, number } = facts;
  const [first] = controllers;
  const unique = isUnique ? [wwid, wwid === undefined ? undefined : `nvme-${wwid}`, nguid, uuid, eui] : [];
  const words = [first?.facts.model, first?.facts.serial].map((word) => (word === undefined ? undefined : linkWord(word)));
  const byModel = words.includes(undefined) ? [] : [`nvme-${words.join('_')}_${number ?? '1'}`];
  // Without the number the name belongs to one of several namespaces, so it identifies only the first.
  const short = words.includes(undefined) || (number ?? '1') !== '1' ? [] : [`nvme-${words.join('_')}`];
  const byPath = controllers.flatMap(({ place: { address } }) => (address === undefined ? [] : [`pci-${address}-nvme-${number ?? '1'}`]));
  const names = [place.name, place.generic, ...unique, ...byModel, ...short, ...byPath];
  return [...new Set(names.filter((name) => name !== undefined))];
}

/** A word as udev writes it into the name of a link: blanks become one underscore, and so does each unusual character. */
const linkWord = (text: string): string => text.replace(/\s+/g, '_').replace(/[^\w#+\-.:=@]/g, '_');

const nodesOf = ({ name, generic }: NamespacePlace): readonly string[] => [
  `/dev/${name}`,
  ...(generic === undefined ? [] : [`/dev/${generic}`]),
];

function identityOf({ model, serial, firmware, numaNode }: ControllerFacts): Partial<Device> {
  return defined({ model, serial, firmware, numaNode });
}
