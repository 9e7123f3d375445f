import { RULE_VERSIONS, type RuleVersion } from '../health/taint-rules.ts';
import type { Kubernetes } from './kubernetes.ts';
import { callOrThrow, NotServed } from './pace.ts';

const GROUP = '/apis/resource.k8s.io';
const NOT_THERE = [404];

/** Returns the first version of the API, from the newest on, in which the API server serves DeviceTaintRules. Every account may ask for that. */
export async function servedRuleVersion(kubernetes: Kubernetes): Promise<RuleVersion> {
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
