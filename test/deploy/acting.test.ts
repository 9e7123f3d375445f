import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { NODE_EVENT } from '../../src/health/journal/node-problem.ts';
import { NODE_CONDITIONS } from '../../src/model/known-well.ts';
import { READY_PARAMETERS } from '../../src/server/http/ready-devices.ts';

const read = (name: string): string => readFileSync(`deploy/${name}`, 'utf8');

interface Rule {
  readonly apiVersion: string;
  readonly kind: string;
  readonly spec: {
    readonly conditions: readonly object[];
    readonly enforcementMode: string;
    readonly taint: { readonly key: string; readonly effect: string };
    readonly nodeSelector: object;
    readonly dryRun?: boolean;
  };
}

interface Monitor {
  readonly pluginConfig: { readonly max_output_length: number; readonly skip_initial_status: boolean };
  readonly conditions: readonly { readonly type: string; readonly reason: string }[];
  readonly rules: readonly {
    readonly type: string;
    readonly condition?: string;
    readonly reason: string;
    readonly path: string;
    readonly args: readonly string[];
  }[];
}

const rules = ['bootstrap', 'continuous'].map((name) => parse(read(`node-readiness/${name}.yaml`)) as Rule);
const objects = parseAllDocuments(read('node-readiness/reporter.yaml')).map((document) => document.toJS() as Record<string, never>);
const objectOf = <T>(kind: string): T => objects.find((one) => one.kind === kind) as T;
interface DaemonSet {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly nodeSelector: object;
        readonly containers: readonly { readonly env: readonly { readonly name: string; readonly value?: string }[] }[];
      };
    };
  };
}
const pod = objectOf<DaemonSet>('DaemonSet').spec.template.spec;
const variables = Object.fromEntries((pod.containers[0]?.env ?? []).map(({ name, value }) => [name, value]));

// The fields are those of the CustomResourceDefinition of the Node Readiness Controller 0.5.
describe('the rules of the Node Readiness Controller', () => {
  it.each(rules.map((rule) => [rule.spec.enforcementMode, rule] as const))('have the required fields and no other: %s', (mode, rule) => {
    expect([rule.apiVersion, rule.kind]).toEqual(['readiness.node.x-k8s.io/v1alpha1', 'NodeReadinessRule']);
    const fields = Object.keys(rule.spec).filter((name) => name !== 'dryRun');
    expect(fields.sort()).toEqual(['conditions', 'enforcementMode', 'nodeSelector', 'taint']);
    expect(['bootstrap-only', 'continuous']).toContain(mode);
    expect(rule.spec.taint.key).toMatch(/^readiness\.k8s\.io\/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/);
    expect(rule.spec.taint.effect).toBe('NoSchedule');
  });

  it('wait for the condition that the reporter writes, on the nodes where it runs', () => {
    for (const { spec } of rules) {
      expect(spec.conditions).toEqual([{ type: variables.CONDITION_TYPE, requiredStatus: 'True' }]);
      expect(spec.nodeSelector).toEqual({ matchLabels: pod.nodeSelector });
    }
    expect(rules.map(({ spec }) => spec.taint.key)).toEqual([...new Set(rules.map(({ spec }) => spec.taint.key))]);
  });

  it('close no node of a running cluster before somebody has looked', () => {
    expect(rules.find(({ spec }) => spec.enforcementMode === 'continuous')?.spec.dryRun).toBe(true);
  });
});

describe('the reporter', () => {
  it('asks the agent of its node by the address of a service of the same namespace', () => {
    interface Service {
      readonly metadata: { readonly name: string; readonly namespace: string };
      readonly spec: {
        readonly internalTrafficPolicy: string;
        readonly selector: object;
        readonly ports: readonly { readonly targetPort: number }[];
      };
    }
    const { metadata, spec } = objectOf<Service>('Service');
    const variable = `${metadata.name.toUpperCase().replaceAll('-', '_')}_SERVICE_HOST`;
    expect(variables.CHECK_ENDPOINT).toBe(`http://$(${variable}):${spec.ports[0]?.targetPort}/-/ready/devices`);
    expect([spec.internalTrafficPolicy, metadata.namespace]).toEqual(['Local', 'device-agent']);
    const agent = parseAllDocuments(read('kustomize/base/manifests.yaml')).map((document) => document.toJS() as Record<string, never>);
    const { spec: served } = agent.find((one) => one.kind === 'DaemonSet') as unknown as {
      readonly spec: { readonly selector: { readonly matchLabels: object } };
    };
    expect(served.selector.matchLabels).toMatchObject(spec.selector);
  });

  it('names only parameters that the agent knows', () => {
    const named = [...read('node-readiness/reporter.yaml').matchAll(/[?&]([a-z-]+)=/g)].map(([, name]) => name);
    expect(named.length).toBeGreaterThan(0);
    expect(READY_PARAMETERS).toEqual(expect.arrayContaining([...new Set(named)]));
  });
});

describe('the configurations of node-problem-detector', () => {
  const monitors = ['devices-unhealthy', 'devices-unknown', 'devices-missing'].map(
    (name) => JSON.parse(read(`node-problem-detector/${name}.json`)) as Monitor,
  );
  const checks = monitors.flatMap((monitor) => monitor.rules);

  it('have a condition for each kind of trouble, a rule for each condition, and one event', () => {
    expect(monitors.flatMap(({ conditions }) => conditions.map(({ type }) => type))).toEqual([...NODE_CONDITIONS]);
    const permanent = checks.filter(({ type }) => type === 'permanent');
    expect(permanent.map(({ condition }) => condition)).toEqual([...NODE_CONDITIONS]);
    expect(checks.map(({ args }) => args[2]).toSorted()).toEqual([...NODE_CONDITIONS, NODE_EVENT].toSorted());
    expect(checks.filter(({ type }) => type === 'temporary').map(({ reason }) => reason)).toEqual([NODE_EVENT]);
  });

  // With the first result of a monitor, node-problem-detector tells all its conditions, also those that it has not asked for.
  it('tell no condition before it was asked for', () => {
    for (const { conditions, rules: own, pluginConfig } of monitors) {
      expect(pluginConfig.skip_initial_status).toBe(true);
      expect(own[0]?.condition).toBe(conditions[0]?.type);
      expect(conditions).toHaveLength(1);
    }
  });

  // A condition that is unknown has the reason of the one that does not hold.
  it('have reasons that are true of a condition that is unknown', () => {
    expect(new Set(monitors.flatMap(({ conditions }) => conditions.map(({ reason }) => reason)))).toEqual(new Set(['DeviceAgentCheck']));
  });
});
