import type { Device } from '../../model/device.ts';
import { ATTRIBUTES, attributeOf } from '../offers/device-name.ts';

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
  const filled = text.replace(/\{([A-Za-z]+(?:\.[A-Za-z0-9_.-]+)?)\}/g, (_, name: string) => {
    const value = placeholder(name, context);
    if (value === undefined) complete = false;
    return value ?? '';
  });
  return complete ? filled : undefined;
}

function placeholder(name: string, { resource, id, device, path }: TemplateContext): string | undefined {
  if (name.startsWith('attribute.')) return device === undefined ? undefined : attributeOf(device, name.slice('attribute.'.length));
  switch (name) {
    case 'resource':
      return resource;
    case 'RESOURCE':
      return resource.toUpperCase().replace(/[^A-Z0-9]/g, '_');
    case 'id':
      return id;
    case 'name':
      return device?.id;
    case 'uuid':
      return device?.uuid;
    case 'bdf':
      return device?.pciAddress;
    case 'index':
      return device === undefined ? undefined : attributeOf(device, ATTRIBUTES.index);
    case 'model':
      return device?.model;
    case 'numa':
      return device?.numaNode?.toString();
    case 'path':
      return path;
    default:
      return undefined;
  }
}
