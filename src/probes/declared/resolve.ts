import type { Resolve } from '../../model/allocation.ts';
import type { Device } from '../../model/device.ts';
import type { DeclaredResource } from './declaration.ts';
import { capturesOf } from './glob.ts';
import { fill, type Words } from './template.ts';

/** Finds the devices whose declared id equals the id of an allocation. For a claim, the driver and the device's name count. */
export function resolver(resources: readonly DeclaredResource[]): Resolve {
  return ({ resource, deviceId, claim }, devices) => {
    const [owner, id] = claim === undefined ? [resource, deviceId] : [claim.driver, claim.device];
    const fitting = resources.filter((declared) => capturesOf(declared.resource, owner) !== undefined);
    const isNamed = (device: Device): boolean =>
      fitting.some(({ kinds, alias }) => {
        const wanted = alias === undefined ? undefined : fill(alias, { id });
        return wanted !== undefined && (kinds?.includes(device.kind) ?? true) && device.aliases.includes(wanted);
      }) ||
      fitting.some(
        ({ kinds, ids = [] }) =>
          (kinds?.includes(device.kind) ?? true) &&
          ids.some((template) => fill(template, wordsOf(device))?.toLowerCase() === id.toLowerCase()),
      );
    return fitting.length === 0 ? [] : devices.filter(isNamed).map((device) => device.id);
  };
}

/** The names that a resource may end in a number for: ids of plugins of these resources may be bare numbers. */
export const ownsNumbers = (resources: readonly DeclaredResource[]): ((resource: string) => boolean) => {
  const numbered = resources.filter(
    ({ ids = [], alias }) => alias !== undefined || ids.some((template) => /^\{(?:index|minor|vfIndex)\}$/.test(template)),
  );
  return (resource) => numbered.some((declared) => capturesOf(declared.resource, resource) !== undefined);
};

/** The facts of a device as texts, and its address with dashes, as drivers of claims write it. */
export function wordsOf(device: Device): Words {
  const texts = Object.entries(device).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' || typeof value === 'number' ? [[name, String(value)]] : [],
  );
  const dashed = device.pciAddress?.replace(/[:.]/g, '-');
  return { ...Object.fromEntries(texts), ...(dashed === undefined ? {} : { dashedAddress: dashed }) };
}
