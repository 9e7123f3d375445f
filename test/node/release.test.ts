import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Machine } from '../kubelet/real/support/machine.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { makeImage, whyNoImage } from './support/oci-image.ts';

const missing = whyNoCluster() ?? whyNoImage();

const HCA = 'example.com/hca';
const RESOURCE = { resource: HCA, select: { family: 'infiniband', kind: 'pf' }, allocation: { strategies: ['envvar'] } };
const WAIT = { interval: 500 };
const IN_NAMESPACE = ['-n', 'device-agent'];
/** All kinds that the chart has, and what its objects make. */
const KINDS = [
  ...['daemonsets', 'pods', 'jobs', 'services', 'serviceaccounts', 'configmaps', 'resourcequotas', 'networkpolicies', 'secrets'],
  ...['roles', 'rolebindings', 'controllerrevisions', 'clusterroles', 'clusterrolebindings'],
  ...['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
].join(',');

interface List<T> {
  readonly items: readonly T[];
}
interface Node {
  readonly spec: { readonly taints?: readonly { readonly key: string; readonly effect: string }[] };
  readonly status: {
    readonly conditions: readonly { readonly type: string; readonly status: string }[];
    readonly allocatable: Readonly<Record<string, string>>;
  };
}

interface Choice {
  readonly publish: boolean;
  readonly plugin: boolean;
}
const CHOICES: readonly Choice[] = [true, false].flatMap((publish) => [true, false].map((plugin) => ({ publish, plugin })));

describe.skipIf(missing !== undefined)(
  `the life of a release on a cluster of two nodes${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    const cluster = missing === undefined ? new Cluster() : (undefined as never);
    const machine = missing === undefined ? new Machine({ infiniband: 2 }) : (undefined as never);
    let directory: string;

    const upgrade = (choice: Choice, ...words: readonly string[]): Promise<string> => {
      const file = join(directory, 'values.yaml');
      const values = {
        image: { pullPolicy: 'Never' },
        port: 9999,
        plugin: { enabled: choice.plugin },
        publish: { enabled: choice.publish, nodeTaint: choice.publish ? 'PreferNoSchedule' : 'off' },
        families: { nvidia: { enabled: false } },
        hostPaths: [{ name: 'simulation', hostPath: join(machine.root, 'sys'), mountPath: '/simulation' }],
        extraEnv: [{ name: 'DEVICE_AGENT_PATH_SYSFS', value: '/simulation' }],
        config: {
          ...(choice.plugin ? { plugin: { resources: [RESOURCE] } } : {}),
          health: { conditions: { 'infiniband.PortDown': { for: '0s', recovery: '0s' } } },
        },
      };
      writeFileSync(file, JSON.stringify(values));
      return cluster.helm('upgrade', '--install', 'device-agent', 'deploy/chart', ...IN_NAMESPACE, '-f', file, '--wait', ...words);
    };
    const nodes = async (): Promise<readonly Node[]> => (await cluster.json<List<Node>>('get', 'nodes')).items;
    /** What each node has of the publisher, such as `DevicesUnhealthy=True taint:PreferNoSchedule`. */
    const published = async (): Promise<readonly string[]> =>
      (await nodes()).map(({ spec, status }) =>
        [
          ...status.conditions.filter(({ type, status: is }) => type === 'DevicesUnhealthy' && is !== 'False').map(({ status: is }) => is),
          ...status.conditions.filter(({ type }) => type.startsWith('Devices')).map(({ type }) => type),
          ...(spec.taints ?? []).filter(({ key }) => key.startsWith('device-agent')).map(({ effect }) => effect),
        ]
          .toSorted()
          .join(' '),
      );
    const offered = async (): Promise<readonly number[]> => (await nodes()).map(({ status }) => Number(status.allocatable[HCA] ?? 0));
    const SICK = 'DevicesMissing DevicesUnhealthy DevicesUnknown PreferNoSchedule True';
    const both = <T>(one: T): readonly T[] => [one, one];
    const setPort = (state: string): void => {
      writeFileSync(join(machine.root, 'sys/class/infiniband/mlx5_0/ports/1/state'), `${state}\n`);
    };
    /** A port that was never up is not missed, so each release begins with a port that is up. */
    const becomesSick = async (): Promise<void> => {
      setPort('1: DOWN');
      await expect.poll(published, WAIT).toEqual(both(SICK));
    };
    const nothingIsLeft = async (): Promise<void> => {
      const left = async (): Promise<readonly string[]> =>
        (await cluster.kubectl('get', KINDS, '-A', '-l', 'app.kubernetes.io/instance=device-agent', '-o', 'name'))
          .split('\n')
          .filter(Boolean);
      await expect.poll(left, WAIT).toEqual([]);
      expect(await published()).toEqual(both(''));
      await expect.poll(offered, WAIT).toEqual([0, 0]);
      expect(cluster.nodes().flatMap((node) => cluster.pluginSockets(node))).toEqual([]);
      expect(JSON.parse(await cluster.helm('list', '-A', '-a', '-o', 'json'))).toEqual([]);
    };

    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), 'device-agent-release-'));
      expect(makeImage(join(directory, 'image'))).toBeUndefined();
      await cluster.start(2);
      await cluster.importImage(join(directory, 'image'));
    });

    afterAll(async () => {
      await cluster.stop();
      machine.remove();
      rmSync(directory, { recursive: true });
    });

    it('is installed by the lines of its README, and tested by helm, with a sentence where there is no DNS', async () => {
      const [, block = ''] = /^## Install$[\s\S]*?^```$\n([\s\S]*?)^```$/m.exec(readFileSync('deploy/chart/README.md', 'utf8')) ?? [];
      // The image is on the nodes already.
      const lines = block.trim().replace('image.registry=REGISTRY', 'image.pullPolicy=Never').split('\n');
      const said: string[] = [];
      for (const line of lines) {
        const run = cluster.shell(undefined, line, resolve('deploy/chart'));
        // These two may fail on this machine, and say why.
        said.push(await (/ doctor$|^helm test/.test(line) ? run.catch(({ message }: Error) => message) : run));
      }
      const [, , , doctor, test] = said;
      expect(doctor).toMatch(/^(?:No|\d+) findings?\.$/m);
      expect(test).toMatch(/failed/i);
      expect(await cluster.kubectl('logs', ...IN_NAMESPACE, 'device-agent-test')).toMatch(
        /^the name device-agent\.device-agent\.svc cannot be resolved \(\w+\): .*test\.hostAliases\.\n$/,
      );
      const choice = { publish: false, plugin: false };
      setPort('4: ACTIVE');
      await upgrade(choice);
      const words = ['get', 'pods', ...IN_NAMESPACE, '-l', 'app.kubernetes.io/name=device-agent'];
      interface Pod {
        readonly metadata: { readonly deletionTimestamp?: string };
        readonly status: { readonly podIP: string };
      }
      // A pod of the revision before can be there, and end.
      const agent = (await cluster.json<List<Pod>>(...words)).items.find(({ metadata }) => metadata.deletionTimestamp === undefined);
      const alias = `test.hostAliases[0].ip=${agent?.status.podIP},test.hostAliases[0].hostnames[0]=device-agent.device-agent.svc`;
      await upgrade(choice, `--set=${alias}`);
      expect(await cluster.helm('test', 'device-agent', ...IN_NAMESPACE)).toMatch(/Phase:\s+Succeeded/);
      await cluster.helm('uninstall', 'device-agent', ...IN_NAMESPACE, '--wait');
      await nothingIsLeft();
    });

    it.each(CHOICES)('is upgraded, rolled back and uninstalled, and leaves nothing: publish $publish, plugin $plugin', async (choice) => {
      setPort('4: ACTIVE');
      await upgrade(choice);
      if (choice.plugin) await expect.poll(offered, WAIT).toEqual([2, 2]);
      if (choice.publish) await expect.poll(published, WAIT).toEqual(both('DevicesMissing DevicesUnhealthy DevicesUnknown'));
      if (choice.publish) await becomesSick();
      await upgrade(choice, '--set=podAnnotations.again=yes');
      await cluster.helm('rollback', 'device-agent', '1', ...IN_NAMESPACE, '--wait');
      if (choice.publish) await expect.poll(published, WAIT).toEqual(both(SICK));
      await cluster.helm('uninstall', 'device-agent', ...IN_NAMESPACE, '--wait');
      await nothingIsLeft();
    });

    it('loses the publisher by an upgrade, which removes what it wrote, and gets it back', async () => {
      setPort('4: ACTIVE');
      await upgrade({ publish: true, plugin: false });
      await expect.poll(published, WAIT).toEqual(both('DevicesMissing DevicesUnhealthy DevicesUnknown'));
      await becomesSick();
      await upgrade({ publish: true, plugin: false }, '--set=publish.nodeTaint=off');
      await expect.poll(published, WAIT).toEqual(both('DevicesMissing DevicesUnhealthy DevicesUnknown True'));
      await upgrade({ publish: false, plugin: false });
      expect(await published()).toEqual(both(''));
      await cluster.helm('rollback', 'device-agent', '1', ...IN_NAMESPACE, '--wait');
      await expect.poll(published, WAIT).toEqual(both(SICK));
      await cluster.helm('uninstall', 'device-agent', ...IN_NAMESPACE, '--wait');
      await nothingIsLeft();
    });
  },
);
