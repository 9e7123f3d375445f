import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { CardFacts } from './card.ts';
import type { CardPlace } from './discover.ts';
import { MODELS } from './models.ts';

/** `parent`: facts of the card that a virtual function belongs to. */
export function deviceOf(place: CardPlace, facts: CardFacts, parent?: CardFacts): Device {
  const model = MODELS[facts.pciDevice ?? ''] ?? MODELS[parent?.pciDevice ?? ''];
  const numaNode = facts.numaNode ?? parent?.numaNode;
  return defined({
    family: 'intelgpu',
    id: place.address,
    kind: place.parent === undefined ? 'gpu' : 'vf',
    aliases: [],
    pciAddress: place.address,
    vendor: 'Intel',
    characterDevices: place.nodes.map((node) => `/dev/dri/${node}`),
    driver: place.driver,
    ...(place.parent !== undefined && { parent: place.parent, physicalFunction: place.parent }),
    vfIndex: place.vfIndex,
    model,
    numaNode,
    pciVendor: facts.pciVendor,
    pciDevice: facts.pciDevice,
    pciPath: facts.pciPath,
  });
}
