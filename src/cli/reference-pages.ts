import { stringify } from 'yaml';
import { renderConfiguration, renderErrors } from '../config/reference.ts';
import { createRegistry } from '../config/registry.ts';
import { optionSections } from '../config/sections.ts';
import { structuredParts } from '../config/structured.ts';
import { OWN_CONDITIONS } from '../health/policy/own-conditions.ts';
import { createPolicy, type HealthPolicy } from '../health/policy/policy.ts';
import { USE_CONDITIONS } from '../health/policy/use-conditions.ts';
import { type FamilyReference, renderConditions, renderMetrics, renderProblems } from '../metrics/page/reference.ts';
import type { DeviceFamily } from '../probes/family.ts';
import { supervisorProblems } from '../supervisor/problems.ts';
import { conditionReference, policyReference } from './health/policy-text.ts';

/** Renders the generated pages below `docs/`, keyed by path. */
export async function referencePages(families: readonly DeviceFamily[]): Promise<Readonly<Record<string, string>>> {
  const sorted = [...families].sort((a, b) => (a.name < b.name ? -1 : 1));
  const everyFamily: FamilyReference = {
    name: 'Every family',
    summary: 'These apply to the devices of all families.',
    metrics: [],
    conditions: [...OWN_CONDITIONS, ...USE_CONDITIONS],
    problems: supervisorProblems,
  };
  const policy = defaultPolicy(sorted);
  return {
    'docs/metrics.md': await renderMetrics(sorted),
    ...renderConditions(everyFamily, sorted, policyReference(policy), (family) => conditionReference(policy, family)),
    'docs/problems.md': renderProblems([everyFamily, ...sorted]),
    'docs/configuration.md': renderConfiguration(createRegistry(optionSections(sorted), structuredParts), stringify),
    'docs/errors.md': renderErrors(),
  };
}

function defaultPolicy(families: readonly DeviceFamily[]): HealthPolicy {
  return createPolicy({ specs: Object.fromEntries(families.map(({ name, conditions }) => [name, conditions])) }).policy;
}
