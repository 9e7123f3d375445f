import type { Device } from '../../model/device.ts';

/** Values for the placeholders of one granted device; `device` is absent for a plain device node. */
export interface TemplateContext {
  readonly resource: string;
  readonly id: string;
  readonly device?: Device;
  readonly path?: string;
}

/** Replaces the placeholders. Returns undefined when the device lacks one of the values, because a partly filled text would be wrong. */
export function fillTemplate(text: string, context: TemplateContext): string | undefined {
  let complete = true;
  const filled = text.replace(/\{([A-Za-z]+)\}/g, (_, name: string) => {
    const value = placeholder(name, context);
    if (value === undefined) complete = false;
    return value ?? '';
  });
  return complete ? filled : undefined;
}

/** Value of each placeholder that is a fact of the device. */
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
  profile: ({ profile }) => profile,
  gpuInstance: ({ gpuInstance }) => gpuInstance,
  computeInstance: ({ computeInstance }) => computeInstance,
};

/** All placeholders that configuration texts can use. */
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
