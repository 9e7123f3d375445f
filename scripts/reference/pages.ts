import { stringify } from 'yaml';
import { createRegistry } from '../../src/config/registry.ts';
import { optionSections } from '../../src/config/sections.ts';
import { structuredParts } from '../../src/config/structured.ts';
import { OWN_CONDITIONS } from '../../src/health/policy/own-conditions.ts';
import { createPolicy, type HealthPolicy } from '../../src/health/policy/policy.ts';
import { USE_CONDITIONS } from '../../src/health/policy/use-conditions.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { supervisorProblems } from '../../src/supervisor/problems.ts';
import { renderConfiguration, renderErrors } from './configuration.ts';
import { type FamilyReference, renderConditions, renderMetrics, renderProblems } from './families.ts';
import { conditionReference, policyReference } from './policy.ts';

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
