import { nearestHint } from '../config/nearest.ts';
import { type DeviceSelector, type PluginResource, selectorsOf } from '../model/plugin-resource.ts';
import type { DeviceFamily } from '../probes/family.ts';

type Declared = Pick<DeviceFamily, 'name' | 'kinds'>;

/** Finds families and kinds in selectors that no device can have, one sentence each: a typing error would offer no device, silently. */
export function selectorProblems(resources: readonly PluginResource[], families: readonly Declared[]): string[] {
  return resources.flatMap(({ resource, select }) =>
    selectorsOf(select).flatMap((selector) => problemsOf(selector, families).map((problem) => `resource "${resource}": ${problem}`)),
  );
}

function problemsOf({ family, kind }: DeviceSelector, families: readonly Declared[]): string[] {
  const names = families.map(({ name }) => name);
  if (family !== undefined && !names.includes(family))
    return [`there is no family "${family}", only ${names.join(', ')}${nearestHint(family, names)}`];
  const declared = families.filter(({ name }) => family === undefined || name === family).flatMap((one) => one.kinds ?? []);
  // Several families may have a kind of the same name.
  const kinds = [...new Set(declared)];
  const place = family === undefined ? '' : ` in ${family}`;
  const wanted = kind === undefined ? [] : [kind].flat();
  return wanted
    .filter((one) => !kinds.includes(one))
    .map((one) => `there is no kind "${one}"${place}, only ${kinds.join(', ')}${nearestHint(one, kinds)}`);
}
