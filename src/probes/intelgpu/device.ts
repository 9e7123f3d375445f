import type { Device } from '../../model/device.ts';
import type { CardFacts } from './card.ts';
import type { CardPlace } from './discover.ts';
import { MODELS } from './models.ts';

/** `parent`: facts of the card that a virtual function belongs to. */
export function deviceOf(place: CardPlace, facts: CardFacts, parent?: CardFacts): Device {
  const model = MODELS[facts.pciDevice ?? ''] ?? MODELS[parent?.pciDevice ?? ''];
  const numaNode = facts.numaNode ?? parent?.numaNode;
  return {
    family: 'intelgpu',
    id: place.address,
    kind: place.parent === undefined ? 'gpu' : 'vf',
    aliases: [],
    pciAddress: place.address,
    vendor: 'Intel',
    characterDevices: place.nodes.map((node) => `/dev/dri/${node}`),
    ...(place.driver !== undefined && { driver: place.driver }),
    ...(place.parent !== undefined && { parent: place.parent, physicalFunction: place.parent }),
    ...(place.vfIndex !== undefined && { vfIndex: place.vfIndex }),
    ...(model !== undefined && { model }),
    ...(numaNode !== undefined && { numaNode }),
    ...(facts.pciVendor !== undefined && { pciVendor: facts.pciVendor }),
    ...(facts.pciDevice !== undefined && { pciDevice: facts.pciDevice }),
    ...(facts.pciPath !== undefined && { pciPath: facts.pciPath }),
  };
}
