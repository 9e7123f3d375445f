import type { Clock } from '../../host/clock.ts';
import type { ClaimName } from '../../model/claim-hardware.ts';
import { hours } from '../../model/duration.ts';
import { isKnownWell } from '../../model/known-well.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import type { WholeDevice } from '../../server/api/views.ts';
import { COMPONENT } from './events.ts';
import type { Kubernetes } from './kubernetes.ts';
import { callOrThrow, NotServed, NotTaken, Refused } from './pace.ts';
import { type AgentView, nodeViewOf } from './view.ts';

/**
 * Versions of the API with DeviceTaintRules, the newest first. `v1` is there from Kubernetes 1.37 on, `v1beta2` from 1.36 on and `v1alpha3` from
 * 1.33 to 1.38, both only where they are switched on. Source: the lifecycle tags in k8s.io/api 0.37. What is used here is the same in all of them.
 */
export const RULE_VERSIONS = ['v1', 'v1beta2', 'v1alpha3'] as const;
export type RuleVersion = (typeof RULE_VERSIONS)[number];
/** Key of each taint of this program, on devices and on nodes. */
export const TAINT_KEY = 'device-agent/unhealthy';
/** Longest name of an object. */
const NAME_LENGTH = 253;

/** Label with the node of the publisher that made a rule. The admission policy of the chart compares it with the token. */
export const NODE_LABEL = 'device-agent/node';
/** Annotation with the device, as `family/id`. */
export const DEVICE_ANNOTATION = 'device-agent/device';

export interface OwnRule {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly deviceSelector: ClaimName & { readonly pool: string };
    readonly taint: { readonly key: string; readonly value: string; readonly effect: string };
  };
}

/** A rule that exists. */
export interface PresentRule {
  readonly name: string;
  /** Undefined when the annotation is gone. */
  readonly key: string | undefined;
  readonly effect: string | undefined;
}

type ListedRule = { readonly [Part in 'metadata' | 'spec']?: Partial<OwnRule[Part]> | null } | null;

/** Returns the rules of a node in a list; undefined when the answer is no list. Everyone who may write rules chooses their names. */
export function rulesIn(body: unknown, node: string): readonly PresentRule[] | undefined {
  const items = (body as { readonly items?: unknown } | undefined | null)?.items;
  if (!Array.isArray(items)) return undefined;
  return items.flatMap((item: ListedRule): PresentRule[] => {
    const { name, labels, annotations } = item?.metadata ?? {};
    if (typeof name !== 'string' || name === '' || labels?.[NODE_LABEL] !== node) return [];
    return [{ name, key: annotations?.[DEVICE_ANNOTATION], effect: item?.spec?.taint?.effect }];
  });
}

export interface RuleChanges {
  readonly add: readonly OwnRule[];
  /** Names. */
  readonly remove: readonly string[];
}

export interface RuleSettings {
  readonly node: string;
  readonly effect: string;
  readonly families: readonly DeviceFamily[];
}

/**
 * Returns the changes after which each unhealthy device has its rules. A rule is removed when its device is known to be well, or another
 * device that is has the name that the rule selects. `isWorkedOn`: somebody works on the node, which gets no further rule meanwhile.
 */
export function ruleChanges(
  view: AgentView,
  present: readonly PresentRule[],
  { node, effect, families, version, isWorkedOn }: RuleSettings & { readonly version: RuleVersion; readonly isWorkedOn: boolean },
): RuleChanges {
  const seen = new Map(nodeViewOf(view).devices.map((device) => [device.key, device]));
  const settings = { node, effect, families, version };
  const wanted = view.board.devices
    .filter(({ key }) => seen.get(key)?.health.state === 'unhealthy')
    .flatMap((device) => rulesOf(device, settings));
  const wantedNames = new Set(wanted.map(({ metadata }) => metadata.name));
  const well = new Set([...seen.values()].filter((device) => isKnownWell(device, view.families)).map(({ key }) => key));
  const namesOfWell = new Set(
    view.board.devices
      .filter((device) => well.has(device.key))
      .flatMap((device) => rulesOf(device, settings).map(({ metadata }) => metadata.name)),
  );
  const isOver = ({ name, key = '' }: PresentRule): boolean => !wantedNames.has(name) && (well.has(key) || namesOfWell.has(name));
  const isOther = ({ metadata, spec }: OwnRule): boolean => {
    const before = present.find(({ name }) => name === metadata.name);
    return before === undefined ? !isWorkedOn : before.effect !== spec.taint.effect;
  };
  return { add: wanted.filter(isOther), remove: present.filter(isOver).map(({ name }) => name) };
}

/** The rules of one device: one for each driver and pool that offers it. */
function rulesOf(
  device: WholeDevice,
  { node, effect, families, version }: RuleSettings & { readonly version: RuleVersion },
): readonly OwnRule[] {
  const value = device.health.conditions[0]?.type ?? 'Unhealthy';
  return targetsOf(device, families, node).map((deviceSelector) => ({
    apiVersion: `resource.k8s.io/${version}`,
    kind: 'DeviceTaintRule',
    metadata: {
      name: objectName([COMPONENT, deviceSelector.driver, deviceSelector.pool, deviceSelector.device]),
      labels: { [NODE_LABEL]: node, 'app.kubernetes.io/managed-by': COMPONENT },
      annotations: { [DEVICE_ANNOTATION]: device.key },
    },
    spec: { deviceSelector, taint: { key: TAINT_KEY, value, effect } },
  }));
}

/**
 * A claim gives the exact name. Without a claim, the first name that a known driver gives to it, in the pool with the name of the node: drivers
 * of local devices name it so.
 */
function targetsOf(
  device: WholeDevice,
  families: readonly DeviceFamily[],
  pool: string,
): readonly (ClaimName & { readonly pool: string })[] {
  const claims = device.holders.flatMap(({ claim, part }) => (claim === undefined || part !== undefined ? [] : [claim]));
  const names = families.find(({ name }) => name === device.family)?.claimNames?.(device) ?? [];
  const first = names.filter(({ driver }, at) => names.findIndex((other) => other.driver === driver) === at);
  const found = claims.length > 0 ? claims : first.map((name) => ({ ...name, pool }));
  const unique = new Map(found.map(({ driver, pool: in_, device: of }) => [`${driver}/${in_}/${of}`, { driver, pool: in_, device: of }]));
  return [...unique.values()];
}

/** The same name each time, so that a second `apply` changes nothing. Pools may contain slashes. */
function objectName(parts: readonly string[]): string {
  return parts
    .join('.')
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .slice(0, NAME_LENGTH)
    .replace(/[.-]+$/, '');
}

/** An API server that was upgraded serves other versions, and says so nowhere. */
const ASK_AGAIN_MS = hours(1);

/** The rules of one node's devices in the cluster. All versions of the API show the same rules. */
export class DeviceRules {
  readonly #kubernetes: Kubernetes;
  readonly #clock: Clock;
  readonly #settings: RuleSettings & { readonly resyncMs: number; readonly isWorkedOn?: () => boolean };
  /** As last listed; undefined when something changed since. */
  #present: readonly PresentRule[] | undefined;
  #listedMs = Number.NEGATIVE_INFINITY;
  #version: RuleVersion | undefined;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(
    kubernetes: Kubernetes,
    clock: Clock,
    settings: RuleSettings & { readonly resyncMs: number; readonly isWorkedOn?: () => boolean },
  ) {
    this.#kubernetes = kubernetes;
    this.#clock = clock;
    this.#settings = settings;
  }

  /** Returns after how many milliseconds to call again, even without news. `view`: undefined while nothing is known, which changes nothing. */
  async keep(view: () => AgentView | undefined): Promise<number> {
    const { resyncMs, isWorkedOn = () => false } = this.#settings;
    if (this.#clock.monotonic() - this.#listedMs >= resyncMs) this.#present = undefined;
    const present = this.#present ?? (await this.#list());
    const version = await this.#served();
    const known = view();
    const settings = { ...this.#settings, version, isWorkedOn: isWorkedOn() };
    const { add, remove } = known === undefined ? { add: [], remove: [] } : ruleChanges(known, present, settings);
    if (add.length + remove.length > 0) this.#present = undefined;
    for (const name of remove) await this.#remove(name);
    for (const rule of add) {
      const path = `${await this.#pathOf(rule.metadata.name)}?fieldManager=${COMPONENT}&force=true`;
      await this.#call({ method: 'PATCH', path, body: rule, contentType: 'application/apply-patch+yaml' });
    }
    if (add.length > 0) await this.#confirm(add);
    return this.#listedMs + resyncMs - this.#clock.monotonic();
  }

  /** Removes all rules of the node. Returns how many there were. */
  async withdraw(): Promise<number> {
    const present = await this.#list();
    for (const { name } of present) await this.#remove(name);
    return present.length;
  }

  async #list(): Promise<readonly PresentRule[]> {
    const selector = encodeURIComponent(`${NODE_LABEL}=${this.#settings.node}`);
    const { body } = await this.#call({ method: 'GET', path: `${await this.#pathOf()}?labelSelector=${selector}` });
    const present = rulesIn(body, this.#settings.node);
    if (present === undefined) throw new NotTaken('the answer has no list of rules');
    this.#present = present;
    this.#listedMs = this.#clock.monotonic();
    return present;
  }

  async #confirm(written: readonly OwnRule[]): Promise<void> {
    const present = await this.#list();
    const isThere = ({ metadata, spec }: OwnRule): boolean =>
      present.some(({ name, effect }) => name === metadata.name && effect === spec.taint.effect);
    const lost = written.find((rule) => !isThere(rule));
    if (lost === undefined) return;
    this.#present = undefined;
    throw new NotTaken(`the list of rules lacks ${lost.metadata.name} as it was written`);
  }

  async #remove(name: string): Promise<void> {
    await callOrThrow(this.#kubernetes, { method: 'DELETE', path: await this.#pathOf(name) }, [404]);
  }

  async #pathOf(name?: string): Promise<string> {
    const path = `/apis/resource.k8s.io/${await this.#served()}/devicetaintrules`;
    return name === undefined ? path : `${path}/${encodeURIComponent(name)}`;
  }

  async #served(): Promise<RuleVersion> {
    if (this.#version === undefined || this.#clock.monotonic() - this.#askedMs >= ASK_AGAIN_MS) {
      this.#version = await servedRuleVersion(this.#kubernetes);
      this.#askedMs = this.#clock.monotonic();
    }
    return this.#version;
  }

  /** After an upgrade or a rollback of the cluster, the version that was used may be gone. */
  async #call(request: Parameters<typeof callOrThrow>[1]): Promise<{ readonly body: unknown }> {
    try {
      return await callOrThrow(this.#kubernetes, request);
    } catch (error) {
      if (error instanceof Refused && error.status === 404) this.#version = undefined;
      throw error;
    }
  }
}

const GROUP = '/apis/resource.k8s.io';
const NOT_THERE = [404];

/** Returns the first version of the API, from the newest on, in which the API server serves DeviceTaintRules. Every account may ask for that. */
async function servedRuleVersion(kubernetes: Kubernetes): Promise<RuleVersion> {
  const { body: group } = await callOrThrow(kubernetes, { method: 'GET', path: GROUP }, NOT_THERE);
  const served = namesIn(group, 'versions', 'version');
  for (const version of RULE_VERSIONS.filter((one) => served.has(one))) {
    const { body } = await callOrThrow(kubernetes, { method: 'GET', path: `${GROUP}/${version}` }, NOT_THERE);
    if (namesIn(body, 'resources', 'name').has('devicetaintrules')) return version;
  }
  throw new NotServed(`the API server serves DeviceTaintRules in none of the versions ${RULE_VERSIONS.join(', ')}`);
}

/** The values of one member of the objects in a list of a discovery document. */
function namesIn(body: unknown, list: string, member: string): ReadonlySet<unknown> {
  const entries = (body as Readonly<Record<string, unknown>> | undefined | null)?.[list];
  return new Set(Array.isArray(entries) ? entries.map((one: Readonly<Record<string, unknown>> | null) => one?.[member]) : []);
}
