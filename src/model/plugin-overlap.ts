import { type DeviceSelector, type PluginResource, selectorsOf } from './plugin-resource.ts';

/** Whether two resources can offer the same device. `possible` depends on the devices of the node. */
export type Overlap = 'none' | 'possible' | 'certain';

/** `certain` means that one of the resources selects every device that the other one selects. */
export function overlapOf(a: PluginResource, b: PluginResource): Overlap {
  if (a.allowOverlap === true || b.allowOverlap === true) return 'none';
  const paths = (a.paths ?? []).filter((path) => b.paths?.includes(path));
  if (paths.length > 0) return 'certain';
  const pairs = selectorsOf(a.select).flatMap((one) => selectorsOf(b.select).map((other) => selectorOverlap(one, other)));
  return pairs.includes('certain') ? 'certain' : pairs.includes('possible') ? 'possible' : 'none';
}

/** Pairs of resources that offer the same devices, one sentence each. */
export function overlapProblems(resources: readonly PluginResource[]): string[] {
  return resources.flatMap((resource, at) =>
    resources
      .slice(at + 1)
      .filter((other) => other.resource !== resource.resource && overlapOf(resource, other) === 'certain')
      .map(
        (other) =>
          `resources "${resource.resource}" and "${other.resource}" offer the same devices, which Kubernetes would hand out twice: ` +
          'let one of them select other devices, or set "allowOverlap: true" for one of them',
      ),
  );
}

/** Members whose values are compared as they are. Two values that differ exclude each other. */
const EXACT: readonly (keyof DeviceSelector)[] = ['family', 'pciVendor', 'pciDevice', 'numaNode', 'hasParts'];
/** Members that are a pattern. Two patterns that differ can match the same value. */
const PATTERNS: readonly (keyof DeviceSelector)[] = ['model', 'driver', 'linkLayer', 'pfName', 'profile'];

function selectorOverlap(a: DeviceSelector, b: DeviceSelector): Overlap {
  const both = (name: keyof DeviceSelector): boolean => a[name] !== undefined && b[name] !== undefined;
  if (EXACT.some((name) => both(name) && plain(a[name]) !== plain(b[name]))) return 'none';
  for (const name of ['kind', 'devices'] as const) if (both(name) && common(a[name], b[name]).length === 0) return 'none';
  return contains(a, b) || contains(b, a) ? 'certain' : 'possible';
}

/** Whether `wide` selects every device that `narrow` selects. */
function contains(wide: DeviceSelector, narrow: DeviceSelector): boolean {
  const isSame = (name: keyof DeviceSelector): boolean => wide[name] === undefined || plain(wide[name]) === plain(narrow[name]);
  const hasAll = (name: 'kind' | 'devices'): boolean =>
    wide[name] === undefined || (narrow[name] !== undefined && common(narrow[name], wide[name]).length === [narrow[name]].flat().length);
  return [...EXACT, ...PATTERNS].every(isSame) && hasAll('kind') && hasAll('devices');
}

const common = (a: string | readonly string[] = [], b: string | readonly string[] = []): readonly string[] =>
  [a].flat().filter((value) => [b].flat().includes(value));

const plain = (value: unknown): string => String(value).toLowerCase().replace(/^0x/, '');
