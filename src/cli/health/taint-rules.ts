import { stringify } from 'yaml';
import type { ClaimName } from '../../model/claim-name.ts';
import { shortened } from '../../model/one-line.ts';

/** The part of a sick device that its rules are made of. */
export interface SickDevice {
  /** `family/id`. */
  readonly key: string;
  /** Type of its worst condition. */
  readonly condition: string;
  readonly message: string;
  /** Names in claims that hold it. */
  readonly claims: readonly (ClaimName & { readonly pool: string })[];
  /** Names that known drivers use for the device. The first name of each driver is the most likely one. */
  readonly names: readonly ClaimName[];
}

/** Served by Kubernetes 1.36 and 1.37, where it is switched on. */
const API_VERSION = 'resource.k8s.io/v1beta2';
const TAINT_KEY = 'device-agent/unhealthy';
const COMMENT_BYTES = 1_024;
/** Longest name of an object. */
const NAME_LENGTH = 253;

/** Writes a DeviceTaintRule for each device, with its reason as comment. `kubectl apply` takes the text. */
export function taintRules(devices: readonly SickDevice[], node: string): string {
  return devices.map((device) => rulesOf(device, node)).join('');
}

function rulesOf(device: SickDevice, node: string): string {
  const { key, condition, message } = device;
  const reason = comment(`${key}: ${message}`);
  const targets = targetsOf(device, node);
  if (targets.length === 0)
    return `${reason}${comment(`${key} has no rule: no claim holds it, and no known DRA driver has a name for it`)}`;
  return targets
    .map((deviceSelector) => {
      const { driver, pool, device: name } = deviceSelector;
      const rule = {
        apiVersion: API_VERSION,
        kind: 'DeviceTaintRule',
        metadata: { name: objectName([driver, pool, name]) },
        spec: { deviceSelector, taint: { key: TAINT_KEY, value: condition, effect: 'NoSchedule' } },
      };
      return `---\n${reason}${stringify(rule)}`;
    })
    .join('');
}

/** A claim gives the exact name. Without a claim, the pool has the name of the node: drivers of local devices name it so. */
function targetsOf({ claims, names }: SickDevice, pool: string): readonly (ClaimName & { readonly pool: string })[] {
  const first = names.filter(({ driver }, at) => names.findIndex((other) => other.driver === driver) === at);
  const found = claims.length > 0 ? claims : first.map((name) => ({ ...name, pool }));
  const unique = new Map(found.map(({ driver, pool: in_, device }) => [`${driver}/${in_}/${device}`, { driver, pool: in_, device }]));
  return [...unique.values()];
}

const comment = (text: string): string => `# ${shortened(text, COMMENT_BYTES)}\n`;

/** The same name each time, so that a second `apply` changes nothing. Pools may contain slashes. */
function objectName(parts: readonly string[]): string {
  return ['device-agent', ...parts]
    .join('.')
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .slice(0, NAME_LENGTH)
    .replace(/[.-]+$/, '');
}
