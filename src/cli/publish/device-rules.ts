import type { Clock } from '../../host/clock.ts';
import { deviceKey } from '../../model/device.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import { API_VERSION, sickDevice, type TaintRule, taintRulesOf } from '../health/taint-rules.ts';
import { COMPONENT } from './events.ts';
import type { Kubernetes } from './kubernetes.ts';
import { callOrThrow } from './pace.ts';
import type { AgentView } from './view.ts';

export const RULES_PATH = `/apis/${API_VERSION}/devicetaintrules`;
/** Label with the node of the publisher that made a rule. The admission policy of the chart compares it with the token. */
export const NODE_LABEL = 'device-agent/node';
/** Annotation with the device, as `family/id`. */
export const DEVICE_ANNOTATION = 'device-agent/device';

export type OwnRule = TaintRule & {
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  };
};

/** A rule that exists. */
export interface PresentRule {
  readonly name: string;
  /** Undefined when the annotation is gone. */
  readonly key: string | undefined;
  readonly effect: string | undefined;
}

/** Returns the rules in a list; undefined when the answer is none. */
export function rulesIn(body: unknown): readonly PresentRule[] | undefined {
  const items = (body as { readonly items?: unknown } | undefined | null)?.items;
  if (!Array.isArray(items)) return undefined;
  return items.map(({ metadata, spec }: OwnRule) => ({
    name: metadata.name,
    key: metadata.annotations?.[DEVICE_ANNOTATION],
    effect: spec?.taint?.effect,
  }));
}

export interface RuleChanges {
  readonly add: readonly OwnRule[];
  /** Names. */
  readonly remove: readonly string[];
}

/**
 * Returns the changes after which exactly the unhealthy devices have rules. A device of unknown state keeps its rules. A device whose claim is
 * gone keeps them too, because a claim can be the only source of its name.
 */
export function ruleChanges(
  { feed, devices }: AgentView,
  present: readonly PresentRule[],
  { node, effect, families }: { readonly node: string; readonly effect: string; readonly families: readonly DeviceFamily[] },
): RuleChanges {
  const states = new Map(feed.map((device) => [deviceKey(device), device.state]));
  const keeps = ({ key = '' }: PresentRule): boolean => ['UNHEALTHY', 'UNKNOWN'].includes(states.get(key) ?? '');
  const wanted = devices
    .filter((device) => states.get(deviceKey(device)) === 'UNHEALTHY')
    .flatMap((device) => {
      const rules = taintRulesOf(sickDevice(device, families), node, effect, COMPONENT);
      const of = {
        labels: { [NODE_LABEL]: node, 'app.kubernetes.io/managed-by': COMPONENT },
        annotations: { [DEVICE_ANNOTATION]: deviceKey(device) },
      };
      return rules.map((rule): OwnRule => ({ ...rule, metadata: { ...rule.metadata, ...of } }));
    });
  return {
    add: wanted.filter(({ metadata, spec }) => !present.some(({ name, effect }) => name === metadata.name && effect === spec.taint.effect)),
    remove: present.filter((rule) => !keeps(rule)).map(({ name }) => name),
  };
}

interface RuleSettings {
  readonly node: string;
  readonly effect: string;
  readonly families: readonly DeviceFamily[];
  readonly resyncMs: number;
}

/** The rules of one node's devices in the cluster. */
export class DeviceRules {
  readonly #kubernetes: Kubernetes;
  readonly #clock: Clock;
  readonly #settings: RuleSettings;
  /** As last listed; undefined when something changed since. */
  #present: readonly PresentRule[] | undefined;
  #listedMs = Number.NEGATIVE_INFINITY;

  constructor(kubernetes: Kubernetes, clock: Clock, settings: RuleSettings) {
    this.#kubernetes = kubernetes;
    this.#clock = clock;
    this.#settings = settings;
  }

  /** Returns after how many milliseconds to call again, even without news. `view`: undefined while nothing is known, which changes nothing. */
  async keep(view: () => AgentView | undefined): Promise<number> {
    const { resyncMs } = this.#settings;
    if (this.#clock.monotonic() - this.#listedMs >= resyncMs) this.#present = undefined;
    const present = this.#present ?? (await this.#list());
    const known = view();
    const { add, remove } = known === undefined ? { add: [], remove: [] } : ruleChanges(known, present, this.#settings);
    if (add.length + remove.length > 0) this.#present = undefined;
    for (const name of remove) await this.#remove(name);
    for (const rule of add) {
      const path = `${RULES_PATH}/${rule.metadata.name}?fieldManager=${COMPONENT}&force=true`;
      await callOrThrow(this.#kubernetes, { method: 'PATCH', path, body: rule, contentType: 'application/apply-patch+yaml' });
    }
    return this.#listedMs + resyncMs - this.#clock.monotonic();
  }

  /** Removes all rules of the node. Returns how many there were. */
  async withdraw(): Promise<number> {
    const present = await this.#list();
    for (const { name } of present) await this.#remove(name);
    return present.length;
  }

  async #list(): Promise<readonly PresentRule[]> {
    const path = `${RULES_PATH}?labelSelector=${encodeURIComponent(`${NODE_LABEL}=${this.#settings.node}`)}`;
    const { body } = await callOrThrow(this.#kubernetes, { method: 'GET', path });
    const present = rulesIn(body) ?? [];
    this.#present = present;
    this.#listedMs = this.#clock.monotonic();
    return present;
  }

  async #remove(name: string): Promise<void> {
    await callOrThrow(this.#kubernetes, { method: 'DELETE', path: `${RULES_PATH}/${name}` }, [404]);
  }
}
