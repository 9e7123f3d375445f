import { stringify } from 'yaml';
import type { ClaimName } from '../../model/claim-hardware.ts';
import { shortened } from '../../model/one-line.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import type { WholeDevice } from '../../server/api/views.ts';

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

/**
 * Versions of the API with DeviceTaintRules, the newest first. `v1` is there from Kubernetes 1.37 on, `v1beta2` from 1.36 on and `v1alpha3` from
 * 1.33 to 1.38, both only where they are switched on. Source: the lifecycle tags in k8s.io/api 0.37. What is used here is the same in all of them.
 */
export const RULE_VERSIONS = ['v1', 'v1beta2', 'v1alpha3'] as const;
export type RuleVersion = (typeof RULE_VERSIONS)[number];
/** Key of each taint of this program, on devices and on nodes. */
export const TAINT_KEY = 'device-agent/unhealthy';
const COMMENT_BYTES = 1_024;
/** Longest name of an object. */
const NAME_LENGTH = 253;

export interface TaintRule {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly deviceSelector: ClaimName & { readonly pool: string };
    readonly taint: { readonly key: string; readonly value: string; readonly effect: string };
  };
}

/** Takes from an unhealthy device what its rules are made of. */
export function sickDevice(device: WholeDevice, families: readonly DeviceFamily[]): SickDevice {
  const [worst] = device.health.conditions;
  return {
    key: device.key,
    condition: worst?.type ?? 'Unhealthy',
    message: worst === undefined ? 'unhealthy' : `${worst.message}; remedy: ${worst.remedy}`,
    claims: device.holders.flatMap(({ claim, part }) => (claim === undefined || part !== undefined ? [] : [claim])),
    names: families.find(({ name }) => name === device.family)?.claimNames?.(device) ?? [],
  };
}

/** Writes a DeviceTaintRule for each device, with its reason as comment. `kubectl apply` takes the text. */
export function taintRules(devices: readonly SickDevice[], node: string): string {
  return devices.map((device) => rulesOf(device, node)).join('');
}

function rulesOf(device: SickDevice, node: string): string {
  const { key, message } = device;
  const reason = comment(`${key}: ${message}`);
  const rules = taintRulesOf(device, { node, effect: 'NoSchedule', prefix: 'device-agent', version: 'v1' });
  if (rules.length === 0) return `${reason}${comment(`${key} has no rule: no claim holds it, and no known DRA driver has a name for it`)}`;
  return rules.map((rule) => `---\n${reason}${stringify(rule)}`).join('');
}

/** `prefix`: begin of the names. */
interface RuleWords {
  readonly node: string;
  readonly effect: string;
  readonly prefix: string;
  readonly version: RuleVersion;
}

/** Returns the rules of one device: one for each driver and pool that offers it. */
export function taintRulesOf(device: SickDevice, { node, effect, prefix, version }: RuleWords): readonly TaintRule[] {
  return targetsOf(device, node).map((deviceSelector) => ({
    apiVersion: `resource.k8s.io/${version}`,
    kind: 'DeviceTaintRule',
    metadata: { name: objectName([prefix, deviceSelector.driver, deviceSelector.pool, deviceSelector.device]) },
    spec: { deviceSelector, taint: { key: TAINT_KEY, value: device.condition, effect } },
  }));
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
  return parts
    .join('.')
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .slice(0, NAME_LENGTH)
    .replace(/[.-]+$/, '');
}
