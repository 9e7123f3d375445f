import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { Machine } from '../kubelet/real/support/machine.ts';
import { copyOfThisTree } from '../support/copied-tree.ts';
import { installCommands } from '../support/install-page.ts';
import { seriesValue } from '../support/serve.ts';
import { BootedSystemd, whyNoSystemd } from './support/booted-systemd.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { OFFLINE } from './support/oci-image.ts';
import { KUBELET, StockNode, whyNoNode } from './support/stock-node.ts';

const HCA = 'example.com/hca';
const PLUGIN = {
  plugin: { resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' }, allocation: { strategies: ['envvar'] } }] },
};
/** The counters of the simulated adapters do not move. */
const STANDS = 0;
const NAMESPACE = ['-n', 'device-agent'];
/** An address that no network of this machine has. */
const OUTSIDE = 'exec 3<>/dev/tcp/192.0.2.1/443';
const program = ['apt-get', 'dpkg-deb'].find((each) => spawnSync(each, ['--version']).error !== undefined);
const missing = whyNoCluster() ?? (program === undefined ? undefined : `there is no ${program}`);
const noService = whyNoNode() ?? whyNoSystemd();

interface List<T> {
  readonly items: readonly T[];
}

describe.skipIf(missing !== undefined)(`a release, without a network${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  const directory = missing === undefined ? mkdtempSync(join(tmpdir(), 'device-agent-offline-')) : '';
  const machine = missing === undefined ? new Machine({ infiniband: 2 }) : (undefined as never);
  /** Where the folder `release` lies. */
  const carried = join(directory, 'carried');
  let whyNot: string | undefined;

  beforeAll(() => {
    const source = join(directory, 'source');
    copyOfThisTree(source);
    execFileSync('cp', ['-al', 'node_modules', join(source, 'node_modules')]);
    const words = [join(source, 'scripts/release.mjs'), '--out', join(carried, 'release')];
    const { status, stderr } = spawnSync(process.execPath, words, { cwd: source, encoding: 'utf8' });
    if (status === 0) return;
    if (!OFFLINE.test(stderr)) throw new Error(`the release was not made:\n${stderr.slice(-3_000)}`);
    whyNot = 'the registries of packages are out of reach';
    mkdirSync(join(carried, 'release'), { recursive: true });
  });

  afterAll(() => {
    machine.remove();
    rmSync(directory, { recursive: true });
  });

  describe('in a cluster', () => {
    const cluster = missing === undefined ? new Cluster() : (undefined as never);
    beforeAll(async () => {
      await cluster.start(1);
      writeFileSync(
        join(carried, 'release/values.yaml'),
        stringify({
          hostPaths: [{ name: 'simulation', hostPath: join(machine.root, 'sys'), mountPath: '/simulation' }],
          extraEnv: [{ name: 'DEVICE_AGENT_PATH_SYSFS', value: '/simulation' }],
        }),
      );
    });
    afterAll(() => cluster.stop());

    it('reaches nothing outside, neither from the node nor where helm runs', async () => {
      expect(await cluster.inNetwork('ip', 'route', 'show', 'default')).toBe('');
      await expect(cluster.inNetwork('bash', '-c', OUTSIDE)).rejects.toThrow(/unreachable/);
      await expect(cluster.inNode('node-1', `bash -c '${OUTSIDE}'`)).rejects.toThrow(/unreachable|No route to host/);
    });

    it('is installed by the six lines of docs/install.md, and no image is pulled', async ({ skip }) => {
      skip(whyNot !== undefined, whyNot);
      const lines = installCommands('Without a network');
      expect(lines).toHaveLength(6);
      for (const line of lines) await cluster.shell(/\bctr\b/.test(line) ? 'node-1' : undefined, line, join(carried, 'release'));
      const { items } = await cluster.json<List<{ metadata: { name: string }; status: { podIP: string } }>>('get', 'pods', ...NAMESPACE);
      expect(items).toHaveLength(1);
      const page = (): Promise<string> => cluster.get(`http://${items[0]?.status.podIP}:9835/metrics`);
      await expect.poll(page, { interval: 500 }).toContain('device_agent_podresources_up 1');
      expect(seriesValue(await page(), 'device_received_bytes_total', { device: 'mlx5_1' })).toBe(STANDS);
      const events = await cluster.json<List<{ reason: string; message: string }>>('get', 'events', ...NAMESPACE);
      const images = events.items.map(({ reason, message }) => `${reason}: ${message}`).filter((text) => /image/i.test(text));
      expect(images).toEqual([expect.stringMatching(/^Pulled: Container image "device-agent:0\.1\.0" already present on machine/)]);
    });
  });

  describe.skipIf(noService !== undefined)(`as a service of systemd${noService === undefined ? '' : ` (skipped: ${noService})`}`, () => {
    const node = noService === undefined && missing === undefined ? new StockNode(KUBELET) : (undefined as never);
    const systemd = new BootedSystemd(join(directory, 'systemd'));
    const page = (): Promise<string> => systemd.run('curl -sf http://127.0.0.1:9835/metrics').catch(() => '');
    const show = async (property: string): Promise<string> => (await systemd.run(`systemctl show -P ${property} device-agent`)).trim();
    const WAIT = { interval: 500 };

    beforeAll(async () => {
      await node.start();
      // A service has a /tmp of its own, so the simulated hardware lies elsewhere.
      const binds = { '/var/lib/kubelet': join(node.root, 'kubelet'), '/srv/simulation': machine.root, '/srv/carried': carried };
      await systemd.start(binds);
    });
    afterAll(async () => {
      await systemd.stop();
      await node.close();
    });

    it('starts with the unit of the release, has no capability, and attributes devices of a stock kubelet', async ({ skip }) => {
      skip(whyNot !== undefined, whyNot);
      await expect(systemd.run(OUTSIDE)).rejects.toThrow(/unreachable/);
      await systemd.run('echo DEVICE_AGENT_PATH_SYSFS=/srv/simulation/sys > /etc/default/device-agent');
      for (const line of installCommands('A machine without Kubernetes')) await systemd.run(line, '/srv/carried/release');
      await expect.poll(page, WAIT).toContain('device_agent_podresources_up 1');
      expect(seriesValue(await page(), 'device_received_bytes_total', { device: 'mlx5_1' })).toBe(STANDS);
      expect(await systemd.run(`grep -h ^Cap /proc/${await show('MainPID')}/status`)).not.toMatch(/^Cap\w+:\t0*[1-9a-f]/m);

      writeFileSync(join(carried, 'plugin.yaml'), stringify(PLUGIN));
      await systemd.run('cp /srv/carried/plugin.yaml /etc/device-agent/config.yaml; systemctl restart device-agent');
      await expect.poll(page, WAIT).toMatch(/^device_agent_plugin_registered\{.*\} 1$/m);
      node.add({ name: 'train', containers: [{ name: 'main', limits: { [HCA]: 1 } }] });
      await expect.poll(page, WAIT).toMatch(new RegExp(`pod="train-node-1",container="main",resource="${HCA}",device="mlx5_[01]"`));
    });

    it('is started again after it was killed, and ends well when it is stopped', async ({ skip }) => {
      skip(whyNot !== undefined, whyNot);
      await systemd.run('systemctl kill --signal=KILL device-agent');
      await expect.poll(() => show('NRestarts'), WAIT).toBe('1');
      await expect.poll(page, WAIT).toContain('device_agent_podresources_up 1');
      await systemd.run('systemctl stop device-agent');
      expect([await show('Result'), await show('ExecMainStatus')]).toEqual(['success', '0']);
    });
  });
});
