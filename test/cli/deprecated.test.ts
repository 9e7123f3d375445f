import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { renderConfiguration } from '../../scripts/reference/configuration.ts';
import { renderMetrics } from '../../scripts/reference/families.ts';
import { createRegistry } from '../../src/config/registry.ts';
import { optionSections } from '../../src/config/sections.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { buildWithFamilies, type OtherBuild } from '../support/other-families.ts';
import { seriesValue, startAgent } from '../support/serve.ts';
import { family } from './deprecated-family.ts';

const OPTION = 'probe.fpga.facts-interval';
const METRIC = 'device_fpga_asleep';
const OPTION_TEXT = '(Deprecated since 0.1: use --refresh.interval.)';
const METRIC_TEXT = '(Deprecated since 0.1: use device_fan_speed_rpm.)';

let build: OtherBuild;
let main: string;
beforeAll(() => {
  build = buildWithFamilies({ fpga: 'test/cli/deprecated-family.ts' });
  main = join(build.root, 'dist/cli/main.js');
});
afterAll(() => rmSync(build.root, { recursive: true, force: true }));

/** What the command prints and logs. */
function command(words: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const env = { ...process.env, ...variables };
  return spawnSync(process.execPath, [main, '--family.dir=', ...words], { encoding: 'utf8', env });
}

const warnings = (log: string): readonly string[] => log.split('\n').filter((line) => line.includes('an option is deprecated'));

describe('a deprecated option', () => {
  it('is marked in the help, in the reference and in the schema', () => {
    expect(command(['serve', '--help']).stdout.replace(/\s+/g, ' ')).toContain(OPTION_TEXT);
    const registry = createRegistry(optionSections([family as unknown as DeviceFamily]));
    expect(renderConfiguration(registry, String)).toMatch(
      /^\| `--probe\.fpga\.facts-interval` .*\(Deprecated since 0\.1: use --refresh\.interval\.\) \|$/m,
    );
    const { properties } = JSON.parse(command(['config', 'schema']).stdout).properties.probe.properties.fpga;
    expect(properties['facts-interval']).toMatchObject({
      deprecated: true,
      default: '1m',
      description: expect.stringContaining(OPTION_TEXT),
    });
    expect(properties.enabled).not.toHaveProperty('deprecated');
  });

  it('is logged once with what to use, however it is set, and works', () => {
    const file = join(build.root, 'agent.yaml');
    writeFileSync(file, 'probe: {fpga: {facts-interval: 7s}}');
    const runs = [
      command(['config', 'print', `--${OPTION}=7s`]),
      command(['config', 'print'], { DEVICE_AGENT_PROBE_FPGA_FACTS_INTERVAL: '7s' }),
      command(['config', 'print', `--config.file=${file}`]),
    ];
    const origins = [`flag --${OPTION}`, 'environment DEVICE_AGENT_PROBE_FPGA_FACTS_INTERVAL', `file ${file}:1`];
    for (const [at, { stdout, stderr }] of runs.entries()) {
      expect(stdout).toContain(`facts-interval: 7s # ${origins[at]}`);
      expect(warnings(stderr)).toHaveLength(1);
      expect(stderr).toMatch(new RegExp(`WARN .* option=${OPTION} origin="?${origins[at]}"? since=0\\.1 use=--refresh\\.interval`));
    }
    expect(warnings(command(['config', 'print']).stderr)).toEqual([]);
  });
});

describe('a deprecated metric', () => {
  it('is marked in the reference', async () => {
    const page = await renderMetrics([family as unknown as DeviceFamily]);
    expect(page).toMatch(/^\| `device_fpga_asleep` .* 0 while it must turn\. \(Deprecated since 0\.1: use device_fan_speed_rpm\.\) \|/m);
  });
});

describe('an agent with both', () => {
  it('exports them as before, and counts loads and scrapes', async () => {
    const root = join(build.root, 'machine');
    const fan = join(root, 'sys/class/fan/fan0');
    for (const directory of [fan, join(root, 'sys/class/net'), join(root, 'proc'), join(root, 'dev')])
      mkdirSync(directory, { recursive: true });
    const files = { serial: 'F0', rpm: '2400', millicelsius: '31500', asleep: '1', stalls: '7' };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(fan, name), `${text}\n`);
    const config = join(build.root, 'served.yaml');
    writeFileSync(config, `probe: {fpga: {facts-interval: 7s}}`);
    const paths = ['sysfs', 'procfs', 'dev'].map((name) => `--path.${name}=${join(root, name.replace(/fs$/, ''))}`);
    const flags = [
      ...paths,
      '--podresources.checkpoint=',
      '--state.file=',
      '--refresh.interval=200ms',
      '--family.dir=',
      `--config.file=${config}`,
    ];
    const agent = await startAgent([process.execPath, main, 'serve', ...flags]);
    onTestFinished(async () => {
      await agent.stop();
    });
    const uses = (page: string, kind: string, name: string) => seriesValue(page, 'device_agent_deprecated_uses_total', { kind, name });
    const page = await agent.until('a counted scrape', (now) => (uses(now, 'metric', METRIC) ?? 0) > 0);
    expect(seriesValue(page, METRIC, { device: 'fan0' })).toBe(1);
    expect(page).toMatch(/^# HELP device_fpga_asleep 1 while the fan may stand still, 0 while it must turn\. \(.*\)$/m);
    expect(page).toContain(METRIC_TEXT);
    expect(uses(page, 'option', OPTION)).toBe(1);
    expect(warnings(agent.log())).toHaveLength(1);

    const reload = async (text: string): Promise<void> => {
      const reloads = (): number => agent.log().split('configuration reloaded').length;
      const before = reloads();
      writeFileSync(config, text);
      agent.child.kill('SIGHUP');
      await expect.poll(reloads).toBe(before + 1);
    };
    await reload('probe: {fpga: {facts-interval: 8s}}');
    await agent.until('the second load', (now) => uses(now, 'option', OPTION) === 2);
    expect(warnings(agent.log()), 'it was set before').toHaveLength(1);
    await reload('refresh: {interval: 300ms}');
    expect(warnings(agent.log())).toHaveLength(1);
    await reload('probe: {fpga: {facts-interval: 8s}}');
    await agent.until('the third load', (now) => uses(now, 'option', OPTION) === 3);
    expect(warnings(agent.log())).toHaveLength(2);
  });
});
