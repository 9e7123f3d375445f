import { createHash } from 'node:crypto';
import type { ContainerAllocateResponse } from '../../generated/deviceplugin/v1beta1/api.ts';
import { DEVICES_VARIABLE_PREFIX, type DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';
import type { Place } from '../../model/locality.ts';
import type { AccessStrategy, AllocationSpec, PluginResource } from '../../model/plugin-resource.ts';
import { compareIds, type HealthRule, type Offer, whyWithheld } from '../offers/inventory.ts';
import { ContainerAnswer, fillTemplate, listed, Refusal, type TemplateContext } from './answer.ts';

/** Returns what a container needs to use a device, as its family defines it; undefined when the family has no access rules. */
export type Access = (device: Device) => DeviceAccess | undefined;

const DEFAULT_STRATEGIES: readonly AccessStrategy[] = ['envvar', 'device-specs'];

/** Lists the devices of one resource, by the names that metrics have as `device`. */
const NAMES_VARIABLE = `${DEVICES_VARIABLE_PREFIX}{RESOURCE}`;

/**
 * Builds the Allocate answer for one container. The answer depends only on the set of ids, not on their order or on earlier calls,
 * because a kubelet that lost its state sends the same request again. Throws {@link Refusal}.
 */
export function allocateContainer(
  ids: readonly string[],
  offers: readonly Offer[],
  resource: PluginResource,
  access: Access,
  healthOf: HealthRule,
): ContainerAllocateResponse {
  const granted = grantedOffers(ids, offers, resource.resource);
  const answer = new ContainerAnswer();
  const strategies = resource.allocation?.strategies ?? DEFAULT_STRATEGIES;
  const cdiNames = new Set<string>();
  for (const grant of grantsOf(granted, resource.resource, healthOf)) {
    const given = grant.device === undefined ? accessToPath(grant, resource.allocation) : accessTo(grant.device, access);
    addAccess(answer, given, strategies, resource);
    if (strategies.includes('envvar')) addNames(answer, given, grant, resource.allocation);
    addConfigured(answer, resource.allocation, grant);
    for (const name of cdiNamesOf(given, resource.allocation, grant)) cdiNames.add(name);
  }
  addCdi(answer, [...cdiNames], strategies, resource.resource);
  return answer.response();
}

/** Returns the offers with these ids, each once, in inventory order. Refuses unknown ids. */
export function namedOffers(ids: readonly string[], offers: readonly Offer[], resource: string): Offer[] {
  const wanted = new Set(ids);
  const found = offers.filter(({ id }) => wanted.has(id));
  for (const { id } of found) wanted.delete(id);
  if (wanted.size > 0) throw new Refusal('unknown-device', `${resource} has no device ${listed([...wanted])}`);
  return found;
}

/** As {@link namedOffers}. Refuses unhealthy ids too. */
export function grantedOffers(ids: readonly string[], offers: readonly Offer[], resource: string): Offer[] {
  const found = namedOffers(ids, offers, resource);
  const bad = found.find(({ health }) => health !== 'Healthy');
  if (bad !== undefined) throw new Refusal('unhealthy-device', `device ${listed([bad.id])} of ${resource} must not be used: ${bad.why}`);
  return found;
}

/**
 * Returns one entry per device, even when the container asked for several replicas of it. The order is that of the devices' names, so
 * that the entries at one place of two variables belong to the same device.
 */
function grantsOf(offers: readonly Offer[], resource: string, healthOf: HealthRule): TemplateContext[] {
  const grants = new Map<string, TemplateContext>();
  for (const { baseId, devices, path } of offers) {
    if (path !== undefined) grants.set(path, { resource, id: baseId, path });
    for (const state of devices) {
      // From a pool, only usable devices are granted. The offer of a single device was already checked.
      if (whyWithheld(state, healthOf) === '') grants.set(state.key, { resource, id: baseId, device: state.device });
    }
  }
  return [...grants.values()].sort((a, b) => compareIds(nameOf(a), nameOf(b)));
}

/** What metrics call the device; the path of a plain device node. */
const nameOf = ({ device, path, id }: TemplateContext): string => device?.id ?? path ?? id;

function accessTo(device: Device, access: Access): DeviceAccess {
  const given = access(device);
  if (given === undefined) throw new Refusal('unsupported-strategy', `no access rules for ${device.family} device "${device.id}"`);
  return given;
}

function accessToPath({ path }: TemplateContext, spec: AllocationSpec | undefined): DeviceAccess {
  return { deviceNodes: [{ path: path as string, permissions: spec?.permissions ?? 'rw' }] };
}

function addAccess(answer: ContainerAnswer, given: DeviceAccess, strategies: readonly AccessStrategy[], resource: PluginResource): void {
  addVisible(answer, given, strategies, resource);
  if (strategies.includes('device-specs')) {
    for (const node of given.deviceNodes) answer.node(node);
    for (const mount of given.mounts ?? []) answer.mount(mount);
  }
  for (const [name, value] of Object.entries(given.annotations ?? {})) answer.annotation(name, value);
}

/** Variables that name the devices: the family's, and one that each resource has. The configuration can give each another value. */
function addNames(answer: ContainerAnswer, given: DeviceAccess, grant: TemplateContext, spec: AllocationSpec | undefined): void {
  const named = { ...given.env, [NAMES_VARIABLE]: nameOf(grant) };
  const configured = new Set(Object.keys(spec?.env ?? {}).map((name) => fillTemplate(name, grant)));
  for (const [template, value] of Object.entries(named)) {
    const name = fillTemplate(template, grant);
    if (name !== undefined && !configured.has(name)) answer.listed(name, value);
  }
}

function addVisible(answer: ContainerAnswer, given: DeviceAccess, strategies: readonly AccessStrategy[], resource: PluginResource): void {
  const { visible } = given;
  const id = visible?.ids[resource.allocation?.visibleBy ?? 'uuid'] ?? visible?.ids.uuid ?? visible?.ids.index;
  if (strategies.includes('volume-mounts')) {
    if (visible?.directory === undefined || id === undefined) {
      throw new Refusal('unsupported-strategy', `the devices of ${resource.resource} cannot be passed by volume mounts`);
    }
    answer.env(visible.variable, visible.directory);
    answer.mount({ path: `${visible.directory}/${id}`, hostPath: '/dev/null', readOnly: false });
  } else if (strategies.includes('envvar') && visible !== undefined && id !== undefined) {
    answer.env(visible.variable, id);
  }
}

function addConfigured(answer: ContainerAnswer, spec: AllocationSpec | undefined, context: TemplateContext): void {
  const fill = (text: string): string | undefined => fillTemplate(text, context);
  for (const [name, value] of filledEntries(spec?.env, fill)) answer.env(name, value);
  for (const [name, value] of filledEntries(spec?.annotations, fill)) answer.annotation(name, value);
  for (const { path, hostPath, readOnly } of spec?.mounts ?? []) {
    const [inside, outside] = [fill(path), fill(hostPath)];
    if (inside !== undefined && outside !== undefined) answer.mount({ path: inside, hostPath: outside, readOnly: readOnly ?? false });
  }
  for (const { path, hostPath, permissions } of spec?.deviceNodes ?? []) {
    const [inside, outside] = [fill(path), fill(hostPath ?? path)];
    if (inside !== undefined && outside !== undefined) answer.node({ path: inside, hostPath: outside, permissions: permissions ?? 'rw' });
  }
}

function* filledEntries(
  map: Readonly<Record<string, string>> | undefined,
  fill: (text: string) => string | undefined,
): Generator<readonly [string, string]> {
  for (const [name, value] of Object.entries(map ?? {})) {
    const [filledName, filledValue] = [fill(name), fill(value)];
    if (filledName !== undefined && filledValue !== undefined) yield [filledName, filledValue];
  }
}

function cdiNamesOf(given: DeviceAccess, spec: AllocationSpec | undefined, context: TemplateContext): string[] {
  if (spec?.cdiDevices === undefined) return [...(given.cdiDevices ?? [])];
  return spec.cdiDevices.map((name) => fillTemplate(name, context)).filter((name) => name !== undefined);
}

function addCdi(answer: ContainerAnswer, names: readonly string[], strategies: readonly AccessStrategy[], resource: string): void {
  const asked = strategies.some((strategy) => strategy === 'cdi-annotations' || strategy === 'cdi-cri');
  if (!asked) return;
  if (names.length === 0) throw new Refusal('unsupported-strategy', `the devices of ${resource} have no CDI names`);
  if (strategies.includes('cdi-cri')) for (const name of names) answer.cdi(name);
  if (strategies.includes('cdi-annotations')) {
    // Two resources of one container need different keys, and the same request must always give the same key.
    const digest = createHash('sha256')
      .update([resource, ...names].join('\n'))
      .digest('hex')
      .slice(0, 16);
    answer.annotation(`cdi.k8s.io/device-agent_${digest}`, names.join(','));
  }
}

/** The kubelet asks for the resources of one container one after the other, within milliseconds. */
const TOGETHER_MS = 1_000;

/**
 * The devices that the kubelet has just allocated, as far as they can belong to the container that it asks for now. No request names its
 * container. Up to Kubernetes 1.36 the kubelet admits one container after the other and asks for each resource once, so a request belongs to
 * the grants right before it, unless its resource is among them. Later kubelets can mix the requests of several pods. A wrong guess only
 * makes a preference worse: the kubelet alone decides which devices are free.
 */
export class Admission {
  #atMs = Number.NEGATIVE_INFINITY;
  #grants: ReadonlyMap<string, readonly Place[]> = new Map();

  /** `nowMs`: monotonic clock. */
  granted(resource: string, places: readonly Place[], nowMs: number): void {
    this.#grants = new Map([...this.#others(resource, nowMs), [resource, places]]);
    this.#atMs = nowMs;
  }

  /** Devices of other resources that the same container probably got. */
  near(resource: string, nowMs: number): readonly Place[] {
    return [...this.#others(resource, nowMs).values()].flat();
  }

  #others(resource: string, nowMs: number): ReadonlyMap<string, readonly Place[]> {
    return nowMs - this.#atMs <= TOGETHER_MS && !this.#grants.has(resource) ? this.#grants : new Map();
  }
}
