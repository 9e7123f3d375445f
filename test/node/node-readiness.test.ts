import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { Machine } from '../kubelet/real/support/machine.ts';
import { Audit } from './support/audit.ts';
import { Cluster, whyNoControlPlane } from './support/cluster.ts';

const run = promisify(execFile);
/** A checkout of kubernetes-sigs/node-readiness-controller. Its module is on no proxy, so it cannot be had in another way. */
const SOURCE = process.env.NODE_READINESS_CONTROLLER;
const missing = whyNoControlPlane() ?? (SOURCE === undefined ? 'NODE_READINESS_CONTROLLER names no source of the controller' : undefined);

const SHIPPED = 'deploy/node-readiness';
const TAINT = { bootstrap: 'readiness.k8s.io/devices-not-proven', continuous: 'readiness.k8s.io/devices-not-ready' };
const CONDITION = 'device-agent.dev/DevicesReady';
const ACCOUNT = 'system:serviceaccount:device-agent:device-ready-reporter';
/** The reporter asks every ten seconds. */
const WAIT = { interval: 200 };
const WORK = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'work', namespace: 'default' },
  spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'main', image: 'localhost/pause:1', imagePullPolicy: 'Never' }] },
};

interface NodeObject {
  readonly spec: { readonly taints?: readonly { readonly key: string }[] };
  readonly status: {
    readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string; readonly message: string }[];
  };
}
interface Images {
  addImage(architecture: string, layers: readonly object[], config: object): string;
  close(name: string, version: string): string;
}
interface Reporter {
  readonly kind: string;
  readonly spec: { readonly template: { readonly spec: { readonly containers: readonly [{ readonly image: string }] } } };
}

describe.skipIf(missing !== undefined)(
  `the Node Readiness Controller and its reporter, with the shipped files${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    const audit = missing === undefined ? new Audit() : (undefined as never);
    const cluster =
      missing === undefined
        ? new Cluster({
            APISERVER_ARGS: audit.flags(ACCOUNT),
            KUBELET_ARGS: `--register-with-taints=${TAINT.bootstrap}=pending:NoSchedule --node-labels=device-agent.dev/devices=true`,
          })
        : (undefined as never);
    const machine = missing === undefined ? new Machine({ infiniband: 2 }) : (undefined as never);
    const folder = mkdtempSync(join(tmpdir(), 'node-readiness-'));
    const stops: (() => unknown)[] = [];
    let address: string;

    const build = (output: string, command: string): Promise<unknown> =>
      run('go', ['build', '-trimpath', '-o', output, command], { cwd: SOURCE, env: { ...process.env, CGO_ENABLED: '0' } });
    const inNetwork = (environment: Readonly<Record<string, string>>, ...words: readonly string[]): void => {
      const [program = '', ...rest] = cluster.throughNetwork(...words);
      const child = spawn(program, rest, { env: { PATH: process.env.PATH, ...environment }, stdio: 'ignore' });
      stops.push(() => child.kill('SIGKILL'));
    };
    const startAgent = (): void =>
      inNetwork(
        {},
        ...[process.execPath, 'dist/cli/main.js', 'serve', ...machine.flags(), `--config.file=${join(folder, 'config.json')}`],
        ...[
          '--podresources.socket=/nowhere/kubelet.sock',
          '--podresources.checkpoint=',
          '--refresh.interval=500ms',
          '--probe.infiniband.expected-ports=mlx5_*:1',
        ],
        `--web.listen-address=${address}:9835`,
      );
    const node = (): Promise<NodeObject> => cluster.json<NodeObject>('get', 'node', 'node-1');
    const condition = async (): Promise<string> => {
      const found = (await node()).status.conditions.find(({ type }) => type === CONDITION);
      return found === undefined ? 'none' : `${found.status} ${found.reason}`;
    };
    const taints = async (): Promise<readonly string[]> =>
      ((await node()).spec.taints ?? []).map(({ key }) => key).filter((key) => key.startsWith('readiness.k8s.io/'));
    const phase = async (): Promise<string> => (await cluster.json<{ status: { phase: string } }>('get', 'pod', 'work')).status.phase;

    beforeAll(async () => {
      await Promise.all([
        build(join(folder, 'manager'), './cmd'),
        build(join(folder, 'layer/reporter'), './cmd/readiness-condition-reporter'),
      ]);
      await cluster.start(1);
      const files = parseAllDocuments(readFileSync(join(SHIPPED, 'reporter.yaml'), 'utf8')).map((document) => document.toJS() as Reporter);
      const image = files.find(({ kind }) => kind === 'DaemonSet')?.spec.template.spec.containers[0].image ?? '';
      await cluster.importImage(await reporterImage(image));
      await cluster.kubectl('create', 'namespace', 'device-agent');
      await cluster.kubectl('apply', '-f', join(SOURCE ?? '', 'config/crd/bases'));
      await cluster.kubectl('wait', '--for=condition=Established', 'crd/nodereadinessrules.readiness.node.x-k8s.io', '--timeout=30s');
      const health = { conditions: { 'infiniband.PortDown': { for: '0s', recovery: '0s' } } };
      writeFileSync(join(folder, 'config.json'), JSON.stringify({ expect: { infiniband: 2 }, health }));
      inNetwork({ KUBECONFIG: join(cluster.directory, 'cp/admin.kubeconfig') }, join(folder, 'manager'), '--health-probe-bind-address=0');
    });
    afterAll(async () => {
      for (const stop of stops) stop();
      if (missing === undefined) {
        await cluster.stop();
        machine.remove();
        audit.remove();
      }
      rmSync(folder, { recursive: true, force: true });
    });

    /** The image of the reporter, with the user that its Dockerfile gives it. */
    async function reporterImage(name: string): Promise<string> {
      const { Layout } = (await import(new URL('../../scripts/image/layout.mjs', import.meta.url).href)) as {
        Layout: new (path: string) => Images;
      };
      const target = join(folder, 'image');
      const layout = new Layout(target);
      const layers = [{ directory: join(folder, 'layer'), title: 'reporter' }];
      layout.addImage('amd64', layers, { User: '65532:65532', Entrypoint: ['/reporter'] });
      const [repository = '', tag = ''] = name.split(/:(?=[^/]*$)/);
      layout.close(repository, tag);
      const index = join(target, 'index.json');
      writeFileSync(index, readFileSync(index, 'utf8').replaceAll('docker.io/library/', ''));
      return target;
    }

    it('keep pods from a new node until its devices were read and have no fatal condition', async () => {
      await cluster.kubectl('apply', '-f', `${SHIPPED}/reporter.yaml`, '-f', `${SHIPPED}/bootstrap.yaml`);
      writeFileSync(join(folder, 'work.json'), JSON.stringify(WORK));
      await cluster.kubectl('apply', '-f', join(folder, 'work.json'));
      // Nothing here forwards the addresses of Services, so that the agent itself listens at that of its Service.
      const service = await cluster.json<{ spec: { clusterIP: string } }>('get', 'service', 'device-agent-ready', '-n', 'device-agent');
      address = service.spec.clusterIP;
      await cluster.inNetwork('ip', 'address', 'add', `${address}/32`, 'dev', 'lo');
      await expect.poll(condition, WAIT).toBe('False EndpointConnectionError');

      machine.pullCable('mlx5_0');
      startAgent();
      await expect.poll(condition, WAIT).toBe('False EndpointNotReady');
      const { status } = await node();
      expect(status.conditions.find(({ type }) => type === CONDITION)?.message).toContain('infiniband/mlx5_0');
      expect([await taints(), await phase()]).toEqual([[TAINT.bootstrap], 'Pending']);

      machine.plugCable('mlx5_0');
      await expect.poll(condition, WAIT).toBe('True EndpointOK');
      await expect.poll(taints, WAIT).toEqual([]);
      await expect.poll(phase, WAIT).toBe('Running');
    });

    it('leave the node alone afterwards', async () => {
      machine.pullCable('mlx5_0');
      await expect.poll(condition, WAIT).toBe('False EndpointNotReady');
      machine.plugCable('mlx5_0');
      await expect.poll(condition, WAIT).toBe('True EndpointOK');
      expect(await taints()).toEqual([]);
    });

    it('by the other rule taint the node whenever a device fails, as soon as the rule is no trial any more', async () => {
      await cluster.kubectl('delete', '-f', `${SHIPPED}/bootstrap.yaml`);
      machine.pullCable('mlx5_1');
      await expect.poll(condition, WAIT).toBe('False EndpointNotReady');
      await cluster.kubectl('apply', '-f', `${SHIPPED}/continuous.yaml`);
      const status = async () =>
        (await cluster.json<{ status?: { dryRunResults?: object } }>('get', 'nodereadinessrule', 'devices-ready')).status?.dryRunResults;
      await expect.poll(status, WAIT).toMatchObject({ affectedNodes: 1, taintsToAdd: 1 });
      expect(await taints()).toEqual([]);
      const rule = parse(readFileSync(`${SHIPPED}/continuous.yaml`, 'utf8')) as { spec: { dryRun: boolean } };
      rule.spec.dryRun = false;
      writeFileSync(join(folder, 'rule.yaml'), stringify(rule));
      await cluster.kubectl('apply', '-f', join(folder, 'rule.yaml'));
      await expect.poll(taints, WAIT).toEqual([TAINT.continuous]);
      expect(await phase(), 'pods that run stay').toBe('Running');
      machine.plugCable('mlx5_1');
      await expect.poll(taints, WAIT).toEqual([]);
    });

    it('write the condition once for each change, and never that of another node', async () => {
      const writes = audit.requests().filter(({ verb }) => verb === 'update' || verb === 'patch');
      const told = writes.map(({ body }) => {
        const { status } = body as NodeObject;
        const found = status.conditions.find(({ type }) => type === CONDITION);
        return `${found?.status} ${found?.reason} ${found?.message}`;
      });
      expect(told.filter((text, at) => text === told[at - 1])).toEqual([]);
      expect(writes.every(({ resource, name, code }) => resource === 'nodes/status' && name === 'node-1' && code === 200)).toBe(true);
    });
  },
);
