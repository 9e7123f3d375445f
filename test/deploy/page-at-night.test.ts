import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { startAlertmanager } from '../support/alertmanager.ts';
import { isInstalled } from '../support/installed.ts';
import { startPrometheus } from '../support/prometheus.ts';
import { quickRules, scrapeJob, WAYS, type Way } from '../support/scrapes.ts';
import { nodeOf, serve } from '../support/serve.ts';

const missing = ['prometheus', 'prometheus-alertmanager'].filter((program) => !isInstalled(program));
const skipped = missing.length === 0 ? '' : ` (skipped: ${missing.join(', ')} not installed)`;

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

describe.skipIf(missing.length > 0)(`a port that goes down at night${skipped}`, () => {
  it('wakes the person on call once, with pod and remedy, and tells when it is over, in each way to scrape', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-night-'));
    undo.push(() => rmSync(directory, { recursive: true }));
    const file = join(directory, 'config.yaml');
    writeFileSync(file, JSON.stringify({ health: { conditions: { 'infiniband.PortDown': { for: '0s', recovery: '1s' } } } }));
    const demo = await serve(
      ['--refresh.interval=500ms', '--sim.devices=all=0,infiniband=4', '--sim.pods=8', '--sim.pod-change=0s', `--config.file=${file}`],
      'demo',
    );
    undo.push(() => demo.stop('SIGINT'));
    const alertmanager = await startAlertmanager();
    undo.push(() => alertmanager.stop());
    const config = {
      global: { evaluation_interval: '1s' },
      rule_files: ['rules.yaml'],
      alerting: { alertmanagers: [{ static_configs: [{ targets: [alertmanager.address] }] }] },
      scrape_configs: WAYS.map((way) => scrapeJob(way, [{ address: new URL(demo.url).host, node: 'gpu-node-7' }])),
    };
    const prometheus = await startPrometheus(config, { 'rules.yaml': quickRules() });
    undo.push(() => prometheus.stop());
    const holderOf = async (): Promise<string | undefined> =>
      /container_device_allocation\{namespace="([^"]+)",pod="([^"]+)",container="([^"]+)",resource="[^"]+",device="mlx5_0"/
        .exec(await demo.metrics())
        ?.slice(1)
        .join('/');
    await expect.poll(holderOf).toBeTruthy();
    const holder = await holderOf();

    const folder = join(nodeOf(demo), 'sys/class/infiniband/mlx5_0/ports/1');
    const port = (state: string, physical: string): void => {
      writeFileSync(join(folder, 'state'), `${state}\n`);
      writeFileSync(join(folder, 'phys_state'), `${physical}\n`);
    };
    port('1: DOWN', '2: Polling');
    const posted = (way: Way) => alertmanager.messages.flat().filter(({ labels }) => labels.device === 'mlx5_0' && labels.cluster === way);
    const last = (): readonly unknown[] => WAYS.map((way) => posted(way).at(-1)?.status);
    await expect.poll(last, { interval: 250 }).toEqual(WAYS.map(() => 'firing'));
    for (const way of WAYS) {
      const [first] = posted(way);
      expect(first?.labels, way).toMatchObject({
        ...{ alertname: 'DeviceOutOfService', severity: 'critical', condition: 'PortDown', part: '1' },
        ...{ node: 'gpu-node-7', remedy: 'check-cable' },
      });
      expect(first?.annotations.summary).toMatch(/^mlx5_0 \([\w ,:.-]+\) on node gpu-node-7 is out of service: PortDown\.$/);
      expect(first?.annotations.holder).toBe(`Held by ${holder}.`);
      expect(first?.annotations.remedy).toBe('Check cable, transceiver and the remote port.');
    }

    port('4: ACTIVE', '5: LinkUp');
    await expect.poll(last, { interval: 250 }).toEqual(WAYS.map(() => 'resolved'));
    for (const way of WAYS) {
      const history = posted(way).map(({ status, labels }) => `${labels.alertname} ${status}`);
      expect(history, way).toEqual(['DeviceOutOfService firing', 'DeviceOutOfService resolved']);
    }
  });
});
