import type { Device } from '../../model/device.ts';

/** What placeholders of one granted device stand for; `device` is absent for a plain device node. */
export interface TemplateContext {
  readonly resource: string;
  readonly id: string;
  readonly device?: Device;
  readonly path?: string;
}

/** Fills a text in. Undefined when it names something that this device does not have: half a value would be a wrong one. */
export function fillTemplate(text: string, context: TemplateContext): string | undefined {
  let complete = true;
  const filled = text.replace(/\{([A-Za-z]+)\}/g, (_, name: string) => {
    const value = placeholder(name, context);
    if (value === undefined) complete = false;
    return value ?? '';
  });
  return complete ? filled : undefined;
}

/** What each placeholder that tells of a device stands for. */
const DEVICE_FACTS: Readonly<Record<string, (device: Device) => string | number | undefined>> = {
  name: ({ id }) => id,
  uuid: ({ uuid }) => uuid,
  bdf: ({ pciAddress }) => pciAddress,
  index: ({ index }) => index,
  minor: ({ minor }) => minor,
  moduleId: ({ moduleId }) => moduleId,
  model: ({ model }) => model,
  serial: ({ serial }) => serial,
  driver: ({ driver }) => driver,
  numa: ({ numaNode }) => numaNode,
  pciVendor: ({ pciVendor }) => pciVendor,
  pciDevice: ({ pciDevice }) => pciDevice,
  pciPath: ({ pciPath }) => pciPath,
  physicalFunction: ({ physicalFunction }) => physicalFunction,
  vfIndex: ({ vfIndex }) => vfIndex,
  sfNumber: ({ sfNumber }) => sfNumber,
  netdev: ({ netdevs }) => netdevs?.[0],
  migProfile: ({ migProfile }) => migProfile,
  gpuInstance: ({ gpuInstance }) => gpuInstance,
  computeInstance: ({ computeInstance }) => computeInstance,
};

/** Placeholders that a text of the configuration may hold. */
export const PLACEHOLDERS: readonly string[] = ['id', 'path', 'resource', 'RESOURCE', ...Object.keys(DEVICE_FACTS)];

function placeholder(name: string, { resource, id, device, path }: TemplateContext): string | undefined {
  switch (name) {
    case 'resource':
      return resource;
    case 'RESOURCE':
      return resource.toUpperCase().replace(/[^A-Z0-9]/g, '_');
    case 'id':
      return id;
    case 'path':
      return path;
    default:
      return device === undefined ? undefined : DEVICE_FACTS[name]?.(device)?.toString();
  }
}
