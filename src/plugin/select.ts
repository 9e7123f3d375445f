import type { Device } from '../model/device.ts';
import { type DeviceSelector, type PluginResource, selectorsOf } from '../model/plugin-resource.ts';
import type { DeviceState } from '../model/snapshot.ts';
import { ATTRIBUTES, attributeOf } from './device-name.ts';

/** The devices of a snapshot that a resource is made of, in the snapshot's order. */
export function selectDevices(resource: PluginResource, devices: readonly DeviceState[]): DeviceState[] {
  const selectors = selectorsOf(resource.select);
  const parents = new Set(devices.filter(isPresent).map(({ device }) => `${device.family}/${device.parent}`));
  return devices.filter((state) => selectors.some((selector) => matches(selector, state.device, parents.has(state.key))));
}

const isPresent = (state: DeviceState): boolean => state.missingSinceMs === undefined;

function matches(selector: DeviceSelector, device: Device, hasParts: boolean): boolean {
  const attribute = (name: string): string | undefined => attributeOf(device, name);
  return (
    isEqual(selector.family, device.family) &&
    isOneOf(selector.kind, [device.kind]) &&
    isLike(selector.model, device.model) &&
    isEqual(hex(selector.pciVendor), hex(attribute(ATTRIBUTES.pciVendor))) &&
    isEqual(hex(selector.pciDevice), hex(attribute(ATTRIBUTES.pciDevice))) &&
    isLike(selector.driver, device.driver) &&
    isEqual(selector.linkLayer?.toLowerCase(), attribute(ATTRIBUTES.linkLayer)?.toLowerCase()) &&
    (isLike(selector.pfName, attribute(ATTRIBUTES.pfName)) || isLike(selector.pfName, device.parent ?? device.id)) &&
    isLike(selector.migProfile, attribute(ATTRIBUTES.migProfile)) &&
    (selector.numaNode === undefined || selector.numaNode === device.numaNode) &&
    isOneOf(selector.devices, [device.id, device.id.toLowerCase(), ...device.aliases]) &&
    (selector.hasParts === undefined || selector.hasParts === hasParts) &&
    Object.entries(selector.attributes ?? {}).every(([name, pattern]) => isLike(pattern, attribute(name)))
  );
}

function isEqual(wanted: string | undefined, actual: string | undefined): boolean {
  return wanted === undefined || wanted === actual;
}

function isOneOf(wanted: string | readonly string[] | undefined, names: readonly string[]): boolean {
  if (wanted === undefined) return true;
  return (typeof wanted === 'string' ? [wanted] : wanted).some((name) => names.includes(name) || names.includes(name.toLowerCase()));
}

function isLike(pattern: string | undefined, actual: string | undefined): boolean {
  if (pattern === undefined) return true;
  return actual !== undefined && new RegExp(`^(?:${pattern})$`, 'i').test(actual);
}

const hex = (text: string | undefined): string | undefined => text?.toLowerCase().replace(/^0x/, '').padStart(4, '0');
