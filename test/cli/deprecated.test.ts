import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { renderMetrics } from '../../scripts/reference/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { buildWithFamilies, type OtherBuild } from '../support/other-families.ts';
import { seriesValue, startAgent } from '../support/serve.ts';
import { family } from './deprecated-family.ts';

const METRIC = 'device_fpga_asleep';
const METRIC_TEXT = '(Deprecated since 0.1: use device_fan_speed_rpm.)';

let build: OtherBuild;
let main: string;
beforeAll(() => {
  build = buildWithFamilies({ fpga: 'test/cli/deprecated-family.ts' });
  main = join(build.root, 'dist/cli/main.js');
});
afterAll(() => rmSync(build.root, { recursive: true, force: true }));

describe('a deprecated metric', () => {
  it('is marked in the reference', async () => {
    const page = await renderMetrics([family as unknown as DeviceFamily]);
    expect(page).toMatch(/^\| `device_fpga_asleep` .* 0 while it must turn\. \(Deprecated since 0\.1: use device_fan_speed_rpm\.\) \|/m);
  });
});

describe('an agent with one', () => {
  it('exports it as before, and counts scrapes', async () => {
    const root = join(build.root, 'machine');
    const fan = join(root, 'sys/class/fan/fan0');
    for (const directory of [fan, join(root, 'sys/class/net'), join(root, 'proc'), join(root, 'dev')])
      mkdirSync(directory, { recursive: true });
    const files = { serial: 'F0', rpm: '2400', millicelsius: '31500', asleep: '1', stalls: '7' };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(fan, name), `${text}\n`);
    const paths = ['sysfs', 'procfs', 'dev'].map((name) => `--path.${name}=${join(root, name.replace(/fs$/, ''))}`);
    const flags = [...paths, '--podresources.checkpoint=', '--state.file=', '--refresh.interval=200ms', '--family.dir='];
    const agent = await startAgent([process.execPath, main, 'serve', ...flags]);
    onTestFinished(async () => {
      await agent.stop();
    });
    const uses = (page: string, name: string) => seriesValue(page, 'device_agent_deprecated_uses_total', { name });
    const page = await agent.until('a counted scrape', (now) => (uses(now, METRIC) ?? 0) > 0);
    expect(seriesValue(page, METRIC, { device: 'fan0' })).toBe(1);
    expect(page).toMatch(/^# HELP device_fpga_asleep 1 while the fan may stand still, 0 while it must turn\. \(.*\)$/m);
    expect(page).toContain(METRIC_TEXT);
  });
});
