import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { valuesIn } from '../../deploy/values/chart-readme.ts';
import { kustomizeFiles } from '../../deploy/values/kustomize.ts';
import { CHART_VALUES, type HostPart } from '../../src/model/declaration.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { manifestOf, presetFile, presets, render, renderText, whyNoHelm } from '../support/chart.ts';
import { hasPart, withPrivileges } from '../support/privileges.ts';
import { PROMTOOLS, promtool } from '../support/promtool.ts';

const missing = whyNoHelm();
const skipped = missing === undefined ? '' : ` (skipped: ${missing})`;

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
}
interface Groups {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

const withValues = <T>(values: object, use: (...words: readonly string[]) => T): T => {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-values-'));
  try {
    const file = join(directory, 'values.yaml');
    writeFileSync(file, stringify(values));
    return use('-f', file);
  } finally {
    rmSync(directory, { recursive: true });
  }
};
const rendered = (values: object) => withValues(values, render);
const refusal = (values: object): string => {
  try {
    withValues(values, renderText);
    return '';
  } catch (error) {
    return String((error as { stderr: string }).stderr);
  }
};

interface Monitor {
  readonly podMetricsEndpoints?: readonly { readonly honorLabels: boolean; readonly relabelings: readonly object[] }[];
  readonly endpoints?: readonly { readonly honorLabels: boolean; readonly relabelings: readonly object[] }[];
}
const endpointOf = (spec: Monitor) => (spec.podMetricsEndpoints ?? spec.endpoints ?? [])[0];

const families = await Promise.all(Object.values(familyLoaders).map((load) => load()));
/** What else a value asks for. */
const WITH: Readonly<Partial<Record<HostPart, object>>> = {
  network: { updateStrategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } },
};

it('has each value that the remedy of a problem names', async () => {
  const named = families.flatMap(({ problems }) =>
    problems.flatMap(({ remedy }) => [...remedy.matchAll(/([\w.]+)(?:: true)? in the values of the chart/g)].map(([, path]) => path ?? '')),
  );
  expect([...new Set(named)].sort()).toEqual(['dev.enabled', 'hostNetwork', 'kmsg.enabled', 'nvme.smart.enabled', 'processes.enabled']);
  const values = parse(readFileSync('deploy/chart/values.yaml', 'utf8')) as object;
  const valueAt = (path: string): unknown =>
    path.split('.').reduce<unknown>((value, name) => (value as Readonly<Record<string, unknown>> | undefined)?.[name], values);
  // They widen the rights of the agent, so they are off.
  expect(named.filter((path) => valueAt(path) !== false)).toEqual([]);
});

describe.skipIf(missing !== undefined)(`the chart${skipped}`, () => {
  it.each(presets)('renders the preset %s', (preset) => {
    const manifests = render('-f', presetFile(preset));
    expect(manifests.map(({ kind }) => kind)).toContain('DaemonSet');
    for (const { metadata } of manifests) expect(metadata.labels['app.kubernetes.io/instance']).toBe('device-agent');
  });

  it('says in docs/security.md what each preset may do (else: run this test with -u)', async () => {
    await expect(
      withPrivileges(
        readFileSync('docs/security.md', 'utf8'),
        presets.map((preset) => [preset, render('-f', presetFile(preset))]),
        families,
      ),
    ).toMatchFileSnapshot('../../docs/security.md');
  });

  it.each(Object.entries(CHART_VALUES) as [HostPart, string][])(
    'gives %s by %s, only then, and docs/security.md explains it',
    (part, path) => {
      const own = path.split('.').reduceRight<unknown>((value, name) => ({ [name]: value }), true) as object;
      expect(hasPart(part, rendered({}))).toBe(false);
      expect(hasPart(part, rendered({ ...own, ...WITH[part] }))).toBe(true);
      expect(readFileSync('docs/security.md', 'utf8')).toContain(`\`${path}\``);
    },
  );

  it('gives no part of the host that no family needs', () => {
    const needed = families.flatMap(({ needs = [] }) => needs.map(({ part }) => part));
    expect(Object.keys(CHART_VALUES).sort()).toEqual([...new Set(needed)].sort());
  });

  it('declares only problems that the family has', () => {
    for (const { name, needs = [], problems } of families) {
      const codes = problems.map(({ code }) => code);
      for (const need of needs) expect(codes, name).toEqual(expect.arrayContaining([...need.problems]));
    }
  });

  it('shows the device plugin all device nodes of the host, read-only and apart from those of the container', () => {
    const [agent] = (
      manifestOf(render('-f', presetFile('device-plugin')), 'DaemonSet').spec as {
        template: { spec: { containers: { volumeMounts: readonly object[]; env: readonly object[] }[] } };
      }
    ).template.spec.containers;
    expect(agent?.volumeMounts).toContainEqual({ name: 'host-dev', mountPath: '/host/dev', readOnly: true });
    expect(agent?.env).toContainEqual({ name: 'DEVICE_AGENT_PATH_DEV', value: '/host/dev' });
  });

  it('is the source of deploy/kustomize (else: npm run generate)', () => {
    const files = kustomizeFiles(renderText, (path) => readFileSync(path, 'utf8'));
    const written = readdirSync('deploy/kustomize', { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.yaml') && name !== 'monitoring/kustomization.yaml')
      .map((name) => `deploy/kustomize/${name}`);
    expect(written.toSorted()).toEqual(Object.keys(files).toSorted());
    const parsed = (text: string): unknown => parseAllDocuments(text).map((document) => document.toJS());
    for (const [path, text] of Object.entries(files)) expect(parsed(readFileSync(path, 'utf8')), path).toEqual(parsed(text));
  });

  it('has monitors that name series by the node, so that a rollout makes no new ones', () => {
    for (const [name, kind] of [
      ['podMonitor', 'PodMonitor'],
      ['serviceMonitor', 'ServiceMonitor'],
    ] as const) {
      const endpoint = endpointOf(manifestOf(rendered({ [name]: { enabled: true } }), kind).spec as Monitor);
      expect(endpoint).toMatchObject({ honorLabels: true });
      expect(endpoint?.relabelings).toContainEqual({ sourceLabels: ['__meta_kubernetes_pod_node_name'], targetLabel: 'instance' });
    }
  });

  it('has one port, which all objects know', () => {
    const text = withValues({ port: 9999, scrapeAnnotations: true, rules: { enabled: true } }, renderText);
    expect(text).not.toContain('9835');
    expect(text).toContain('value: :9999');
    for (const part of [
      'containerPort: 9999',
      'port: 9999',
      'prometheus.io/port: "9999"',
      ':9999/readyz',
      '.svc:9999{{ end }}/docs/runbooks/devices.md{{',
    ])
      expect(text).toContain(part);
  });

  it('lets a variable of extraEnv replace one of the chart, each name once', () => {
    const extraEnv = [
      { name: 'TZ', value: 'UTC' },
      { name: 'DEVICE_AGENT_PATH_SYSFS', value: '/simulation' },
    ];
    const { containers } = (
      manifestOf(rendered({ extraEnv }), 'DaemonSet').spec as {
        template: { spec: { containers: { env: readonly { name: string; value?: string }[] }[] } };
      }
    ).template.spec;
    const env = containers[0]?.env ?? [];
    const names = env.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const one of extraEnv) expect(env).toContainEqual(one);
  });

  it.each([
    [{ config: { path: { sysfs: '/x' } } }, 'config.path.sysfs cannot be set: the chart mounts'],
    [{ config: { path: { procfs: '/x' } } }, 'config.path.procfs cannot be set: the chart mounts'],
    [{ config: { path: { dev: '/x' } } }, 'Set dev.enabled instead.'],
    [{ config: { web: { 'listen-address': ':1' } } }, 'Set the value port instead.'],
    [{ config: { web: { config: { file: '/x' } } } }, 'Set webConfig.secretName and webConfig.tls instead.'],
    [{ config: { state: { file: '' } } }, 'Set state.enabled and state.hostPath instead.'],
    [{ config: { path: { kmsg: '/x' } }, kmsg: { enabled: true } }, 'kmsg.enabled sets the path'],
    [{ config: { probe: { nvidia: { 'nvml-library': '/x' } } }, nvidia: { driverRoot: '/y' } }, 'nvidia.driverRoot sets the path'],
    [{ extraEnv: [{ name: 'DEVICE_AGENT_WEB_LISTEN_ADDRESS', value: ':1' }] }, 'Set the value port instead.'],
    [{ extraArgs: ['--web.listen-address=:1'] }, 'Set the value port instead.'],
    [{ hostPaths: [{ name: 'sys', hostPath: '/a', mountPath: '/b' }] }, 'name sys occurs twice'],
    [{ extraVolumeMounts: [{ name: 'x', mountPath: '/host/sys' }] }, 'mountPath /host/sys occurs twice'],
  ])('refuses %o with a sentence', (values, sentence) => {
    expect(refusal(values)).toContain(sentence);
  });

  it('lets a library of NVIDIA be named where the chart names none', () => {
    expect(refusal({ config: { probe: { nvidia: { 'nvml-library': '/x' } } } })).toBe('');
  });

  it('describes each value in its schema and its README, which names what an uninstallation leaves', () => {
    const schema = JSON.parse(readFileSync('deploy/chart/values.schema.json', 'utf8')) as Readonly<Record<string, unknown>>;
    const readme = readFileSync('deploy/chart/README.md', 'utf8');
    const described = valuesIn(schema);
    expect(described.filter(({ description }) => description === '')).toEqual([]);
    expect(described.length).toBeGreaterThan(110);
    for (const { path } of described) expect(readme).toContain(`| \`${path}\` | `);
    for (const left of ['state.hostPath', 'helm test', 'Conditions, taint rules and taints']) expect(readme).toContain(left);
  });

  it('tests agents by a pod that usual policies admit', () => {
    const test = manifestOf(rendered({}), 'Pod').spec as { readonly containers: readonly object[] };
    expect(test.containers).toMatchObject([
      {
        securityContext: {
          runAsNonRoot: true,
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
        },
        resources: { requests: { memory: '64Mi' }, limits: { memory: '192Mi' } },
      },
    ]);
  });

  it('has the rules of deploy/rules.yaml, with the selector and the thresholds of its values', () => {
    const plain = parse(readFileSync('deploy/rules.yaml', 'utf8')) as Groups;
    const rulesOf = (values: object): readonly Rule[] =>
      (manifestOf(rendered({ rules: { enabled: true, ...values } }), 'PrometheusRule').spec as Groups).groups.flatMap(({ rules }) => rules);
    const names = (rules: readonly Rule[]) => rules.map(({ alert, record }) => alert ?? record);
    const all = plain.groups.flatMap(({ rules }) => rules);
    expect(names(rulesOf({}))).toEqual(names(all));
    const simple = (expr: string): string => expr.replaceAll(/\{,?\}/g, '').replaceAll(',}', '}');
    expect(rulesOf({}).map(({ expr }) => simple(expr))).toEqual(all.map(({ expr }) => simple(expr)));
    const chosen = rulesOf({
      selector: 'job="agents"',
      runbooks: 'runbooks.example',
      recording: false,
      alerts: { DeviceIdle: { threshold: 0.2, for: '2h' }, DeviceDegraded: { enabled: false } },
    });
    expect(names(chosen)).not.toContain('DeviceDegraded');
    expect(names(chosen)).not.toContain('cluster:devices:count');
    expect(chosen.find(({ alert }) => alert === 'DeviceIdle')).toMatchObject({
      expr: expect.stringMatching(/device_utilization_ratio\{job="agents"\}\[2h\]\)\) < 0\.2\n/),
      for: '2h',
      annotations: { runbook_url: expect.stringMatching(/^runbooks\.example\/devices\.md\{\{.*\}\}#deviceidle$/) },
    });
    const priced = rulesOf({ prices: { nvidia: 2.5, 'NVIDIA H100': 4 } });
    const cost = parse(readFileSync('deploy/rules-cost.yaml', 'utf8')) as Groups;
    const byName = (name: string) => priced.filter(({ record }) => record === name);
    expect(byName('priced:device_hour_price:max')).toEqual([
      { record: 'priced:device_hour_price:max', labels: { priced: 'NVIDIA H100' }, expr: 'vector(4)' },
      { record: 'priced:device_hour_price:max', labels: { priced: 'nvidia' }, expr: 'vector(2.5)' },
    ]);
    expect(priced.slice(-2)).toEqual(cost.groups[0]?.rules.slice(-2));
    const stall = parse(readFileSync('deploy/rules-stall.yaml', 'utf8')) as Groups;
    const stalled = rulesOf({ stall: { enabled: true } });
    expect(stalled).toEqual([...rulesOf({}), ...(stall.groups[0]?.rules ?? [])]);
    expect(rulesOf({ stall: { enabled: true, jobLabel: 'label_job' } }).find(({ record }) => record === 'job:pod_info:max')?.expr).toMatch(
      /kube_pod_labels\{label_job!=""\}.*"holder_job", "\$1", "label_job"/,
    );
    const fleet = parse(readFileSync('deploy/rules-fleet.yaml', 'utf8')) as Groups;
    const withFleet = rulesOf({ fleet: true });
    expect(withFleet.slice(rulesOf({}).length).map(({ record }) => record)).toEqual(
      fleet.groups.flatMap(({ rules }) => rules.map(({ record }) => record)),
    );
    for (const rules of [rulesOf({}), chosen, priced, stalled, withFleet])
      withValues({ groups: [{ name: 'all', rules }] }, (_flag, file = '') => {
        for (const { program, isThere } of PROMTOOLS)
          if (isThere) expect(promtool(program, ['check', 'rules', file]), program).toContain('SUCCESS');
      });
  });

  it('serves the fleet from Prometheus, without a right in Kubernetes', () => {
    const none = rendered({}).map(({ metadata }) => metadata.name);
    expect(none.filter((name) => name.endsWith('-fleet'))).toEqual([]);
    const prometheus = { url: 'http://prometheus:9090', tenant: 'a', secret: 'client', secretKeys: { 'token-file': 'token' } };
    const made = rendered({ fleet: { enabled: true, prometheus, extraArgs: ['--group-label=label_pool'] } }).filter(({ metadata }) =>
      metadata.name.endsWith('-fleet'),
    );
    expect(made.map(({ kind }) => kind).toSorted()).toEqual(['Deployment', 'Service']);
    const text = JSON.stringify(made);
    expect(text).toContain('"automountServiceAccountToken":false');
    expect(text).toContain(
      JSON.stringify([
        'fleet',
        '--listen=:9836',
        '--prometheus=http://prometheus:9090',
        '--tenant=a',
        '--token-file=/etc/prometheus-client/token',
        '--group-label=label_pool',
      ]),
    );
  });

  it('brings each dashboard to the sidecar of Grafana', () => {
    const maps = rendered({ dashboards: { enabled: true } }).filter(({ metadata }) => metadata.labels.grafana_dashboard === '1');
    expect(maps).toHaveLength(8);
    for (const { data = {} } of maps) for (const text of Object.values(data)) expect(JSON.parse(text)).toHaveProperty('panels');
  });

  it('writes the configuration with the switches of families', () => {
    const values = { families: { nvidia: { enabled: false } }, config: { refresh: { interval: '5s' }, web: { 'allowed-hosts': ['a'] } } };
    const { data } = manifestOf(rendered(values), 'ConfigMap');
    expect(parse(data?.['config.yaml'] ?? '')).toEqual({
      ...{ probe: { nvidia: { enabled: false } }, refresh: { interval: '5s' } },
      web: {
        'allowed-hosts': ['a', 'device-agent.device-agent', 'device-agent.device-agent.svc', 'device-agent.device-agent.svc.cluster.local'],
      },
    });
  });

  describe('what widens the rights of the agent', () => {
    interface Agent {
      readonly hostPID?: boolean;
      readonly hostNetwork?: boolean;
      readonly containers: readonly {
        readonly securityContext: object;
        readonly volumeMounts: readonly { readonly name: string }[];
        readonly env?: readonly object[];
      }[];
      readonly volumes: readonly object[];
    }
    const podOf = (values: object) => (manifestOf(rendered(values), 'DaemonSet').spec as { template: { spec: Agent } }).template.spec;
    const contextOf = (values: object) => podOf(values).containers[0]?.securityContext;
    const least = {
      ...{ runAsUser: 0, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
      ...{ capabilities: { drop: ['ALL'] }, seccompProfile: { type: 'RuntimeDefault' } },
    };

    it('is off by default', () => {
      const { hostPID, hostNetwork } = podOf({});
      expect([hostPID, hostNetwork, contextOf({})]).toEqual([undefined, undefined, least]);
    });

    it('is two capabilities for the processes on GPUs', () => {
      const added = { ...least, capabilities: { drop: ['ALL'], add: ['SYS_PTRACE', 'DAC_READ_SEARCH'] } };
      expect(contextOf({ processes: { enabled: true } })).toEqual(added);
    });

    it('is a privileged container for the SMART logs of drives, which the configuration then reads', () => {
      const manifests = rendered({ nvme: { smart: { enabled: true } }, config: { probe: { nvme: { 'smart-directory': '/logs' } } } });
      const { data } = manifestOf(manifests, 'ConfigMap');
      expect(parse(data?.['config.yaml'] ?? '')).toMatchObject({ probe: { nvme: { smart: true, 'smart-directory': '/logs' } } });
      expect(contextOf({ nvme: { smart: { enabled: true } } })).toEqual({ runAsUser: 0, readOnlyRootFilesystem: true, privileged: true });
    });

    it('is nothing for the kernel log: a container of its own reads it, with /dev/kmsg and one socket', () => {
      const pod = podOf({ kmsg: { enabled: true } });
      const [agent, reader, ...others] = pod.containers;
      expect([agent?.securityContext, others]).toEqual([least, []]);
      expect(reader).toMatchObject({
        ...{ name: 'kernel-log', args: ['kernel-log', '--socket=/run/kernel-log/socket'] },
        resources: { requests: { memory: '56Mi' }, limits: { memory: '128Mi' } },
      });
      expect(reader?.securityContext).toEqual({ runAsUser: 0, readOnlyRootFilesystem: true, privileged: true });
      expect(Object.keys(reader ?? {}).sort()).toEqual(
        ['args', 'image', 'imagePullPolicy', 'name', 'resources', 'securityContext', 'volumeMounts'].sort(),
      );
      expect(reader?.volumeMounts).toEqual([
        { name: 'kmsg', mountPath: '/dev/kmsg', readOnly: true },
        { name: 'kernel-log', mountPath: '/run/kernel-log' },
      ]);
      expect(agent?.volumeMounts).toContainEqual({ name: 'kernel-log', mountPath: '/run/kernel-log', readOnly: true });
      expect(agent?.volumeMounts.map(({ name }) => name)).not.toContain('kmsg');
      expect(pod.volumes).toEqual(
        expect.arrayContaining([
          { name: 'kmsg', hostPath: { path: '/dev/kmsg', type: 'CharDevice' } },
          { name: 'kernel-log', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
        ]),
      );
      expect(agent?.env).toContainEqual({ name: 'DEVICE_AGENT_PATH_KMSG', value: '/run/kernel-log/socket' });
      expect(podOf({}).containers).toHaveLength(1);
    });

    it('is the network of the host for SR-IOV functions', () => {
      const { hostNetwork } = podOf({ hostNetwork: true, updateStrategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } });
      expect(hostNetwork).toBe(true);
    });

    it('can be added to', () => {
      const given = { capabilities: { add: ['SYSLOG'] }, appArmorProfile: { type: 'Unconfined' } };
      expect(contextOf({ securityContext: given })).toEqual({
        ...least,
        capabilities: { drop: ['ALL'], add: ['SYSLOG'] },
        appArmorProfile: { type: 'Unconfined' },
      });
    });
  });

  describe('the publisher', () => {
    interface Pod {
      readonly serviceAccountName: string;
      readonly automountServiceAccountToken: boolean;
      readonly containers: readonly {
        readonly args: readonly string[];
        readonly securityContext: object;
        readonly volumeMounts: readonly { readonly mountPath: string; readonly readOnly?: boolean }[];
      }[];
    }
    const NAMES = ['device-agent', 'device-agent-publish'];
    const daemonSets = (values: object) =>
      rendered(values)
        .filter(({ kind, metadata }) => kind === 'DaemonSet' && metadata.annotations?.['helm.sh/hook'] === undefined)
        .map(({ metadata, spec }) => ({ name: metadata.name, pod: (spec as { template: { spec: Pod } }).template.spec }))
        .toSorted((a, b) => a.name.localeCompare(b.name));
    const rightsOf = (values: object) =>
      rendered(values)
        .filter(({ kind }) => kind === 'ClusterRole')
        .flatMap((role) => (role as unknown as { rules: readonly { resources: readonly string[]; verbs: readonly string[] }[] }).rules)
        .map(({ resources, verbs }) => `${verbs.join(' ')} ${resources.join(' ')}`);
    const on = (more: object = {}): object => ({ publish: { enabled: true, ...more } });

    it('is off by default, and then nothing has a right in the cluster', () => {
      expect(daemonSets({}).map(({ name }) => name)).toEqual(['device-agent']);
      expect(rendered({}).filter(({ kind }) => /Role|Admission/.test(kind))).toEqual([]);
    });

    it('is a pod of its own with the only token, and leaves the agent as it is', () => {
      const [agent, publisher] = daemonSets(on());
      expect([agent?.name, publisher?.name]).toEqual(NAMES);
      expect(agent).toEqual(daemonSets({})[0]);
      expect(NAMES.map((name) => daemonSets(on()).find((one) => one.name === name)?.pod.automountServiceAccountToken)).toEqual([
        false,
        true,
      ]);
      expect(publisher?.pod.serviceAccountName).toBe('device-agent-publish');
      const [container] = publisher?.pod.containers ?? [];
      expect(container?.securityContext).toMatchObject({ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } });
      expect(container?.volumeMounts.map(({ mountPath, readOnly }) => [mountPath, readOnly])).toEqual([
        ['/etc/device-agent', true],
        ['/var/lib/device-agent', true],
      ]);
    });

    it('has the rights that it uses, each with a policy that limits it to its node', () => {
      const least = ['get nodes', 'patch nodes/status'];
      expect(rightsOf(on({ events: false }))).toEqual(least);
      expect(rightsOf(on())).toEqual([...least, 'create events']);
      expect(rightsOf(on({ deviceTaintRules: 'NoSchedule' }))).toEqual([
        ...least,
        'create events',
        'list create patch delete devicetaintrules',
      ]);
      expect(rightsOf(on({ nodeTaint: 'NoSchedule' }))).toEqual([...least, 'create events', 'patch nodes']);
      const policy = manifestOf(rendered(on()), 'ValidatingAdmissionPolicy').spec as {
        matchConditions: readonly { expression: string }[];
        variables: readonly { name: string; expression: string }[];
      };
      expect(policy.matchConditions.map(({ expression }) => expression)).toEqual([
        'request.userInfo.username == "system:serviceaccount:device-agent:device-agent-publish"',
      ]);
      expect(policy.variables.find(({ name }) => name === 'changesTaints')?.expression).toMatch(/^false && /);
      expect(manifestOf(rendered(on()), 'ValidatingAdmissionPolicyBinding').spec).toMatchObject({ validationActions: ['Deny'] });
      expect(readFileSync('docs/publish.md', 'utf8')).toContain('ValidatingAdmissionPolicy');
    });

    it('has the SELinux type of the agent, and nothing else of its security context', () => {
      const seLinuxOptions = { type: 'spc_t' };
      const contexts = daemonSets({ ...on(), securityContext: { privileged: true, seLinuxOptions } }).map(
        ({ pod }) => pod.containers[0]?.securityContext,
      );
      expect(contexts).toMatchObject([{ privileged: true, seLinuxOptions }, { seLinuxOptions }]);
      expect(contexts[1]).not.toHaveProperty('privileged');
      expect(daemonSets(on())[1]?.pod.containers[0]?.securityContext).not.toHaveProperty('seLinuxOptions');
    });

    it('is replaced before it goes by one that removes what it wrote, with its account and one right to read', () => {
      const hooks = rendered(on()).filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === 'pre-delete');
      expect(hooks.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted()).toEqual([
        'DaemonSet device-agent-publish',
        'Job device-agent-withdraw',
        'Role device-agent-withdraw',
        'RoleBinding device-agent-withdraw',
        'ServiceAccount device-agent-withdraw',
      ]);
      const { spec } = (manifestOf(hooks, 'DaemonSet').spec as { template: { spec: Pod & { initContainers: readonly object[] } } })
        .template;
      expect(spec).toMatchObject({ serviceAccountName: 'device-agent-publish', initContainers: [{ args: ['publish', '--withdraw'] }] });
      expect((manifestOf(hooks, 'Role') as unknown as { rules: unknown }).rules).toEqual([
        { apiGroups: ['apps'], resources: ['daemonsets'], resourceNames: ['device-agent-publish'], verbs: ['get'] },
      ]);
      expect(rendered({}).filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === 'pre-delete')).toEqual([]);
    });

    it('needs the directory with the socket of the agent', () => {
      expect(refusal({ ...on(), state: { enabled: false } })).toContain('publish.enabled needs state.enabled');
    });
  });

  it('has a switch for each family that is on', async () => {
    const families = await Promise.all(Object.values(familyLoaders).map((load) => load()));
    const on = families.filter(({ isOffByDefault }) => isOffByDefault !== true).map(({ name }) => name);
    const { families: switches } = parse(readFileSync('deploy/chart/values.yaml', 'utf8')) as { families: object };
    expect(Object.keys(switches).sort()).toEqual(on.sort());
    expect(refusal({ families: { pci: { enabled: true } } })).toMatch(/pci/);
  });

  it('does not restart the agents when the configuration changes, except where that is asked for', () => {
    const template = (values: object) => (manifestOf(rendered(values), 'DaemonSet').spec as { template: object }).template;
    const [a, b] = [{ refresh: { interval: '5s' } }, { refresh: { interval: '6s' } }];
    expect(template({ config: a })).toEqual(template({ config: b }));
    expect(template({ config: a, restartOnConfigChange: true })).not.toEqual(template({ config: b, restartOnConfigChange: true }));
  });

  it('asks by https, or only for a connection, where the web configuration says so', () => {
    const probe = (webConfig: object) =>
      (
        manifestOf(rendered({ webConfig: { secretName: 'web', ...webConfig } }), 'DaemonSet').spec as {
          template: { spec: { containers: { livenessProbe: object }[] } };
        }
      ).template.spec.containers[0]?.livenessProbe;
    expect(probe({ tls: true })).toMatchObject({ httpGet: { path: '/healthz', port: 'metrics', scheme: 'HTTPS' } });
    expect(probe({ tls: true, requiresClientCertificate: true })).toMatchObject({ tcpSocket: { port: 'metrics' } });
  });

  it('lets only the pods of Prometheus reach the port where the preset asks for it', () => {
    const policies = render('-f', presetFile('network-policy')).filter(({ kind }) => kind === 'NetworkPolicy');
    expect(policies.map(({ spec }) => spec)).toEqual([
      {
        podSelector: { matchLabels: { 'app.kubernetes.io/name': 'device-agent', 'app.kubernetes.io/instance': 'device-agent' } },
        policyTypes: ['Ingress', 'Egress'],
        ingress: [
          {
            ports: [{ port: 'metrics' }],
            from: [
              {
                namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } },
                podSelector: { matchLabels: { 'app.kubernetes.io/name': 'prometheus' } },
              },
            ],
          },
        ],
        egress: [],
      },
    ]);
  });

  it('refuses wrong values with their place', () => {
    expect(refusal({ service: { port: 'abc' } })).toMatch(/service.port/);
    expect(refusal({ config: { plugin: { resorces: [] } } })).toMatch(/config.plugin.*resorces/);
    expect(refusal({ rules: { alerts: { DeviceIdel: {} } } })).toMatch(/DeviceIdel/);
    expect(refusal({ processes: { enabled: 'some' } })).toMatch(/processes.enabled/);
    expect(refusal({ nvme: { smrat: {} } })).toMatch(/smrat/);
    expect(refusal({ families: { nvidea: { enabled: true } } })).toMatch(/nvidea/);
    expect(refusal({ hostNetwork: true })).toMatch(/maxSurge must be 0 with hostNetwork/);
  });
});
