import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfiguration } from '../../src/config/configuration.ts';
import { createRegistry, variableOf } from '../../src/config/registry.ts';
import { retiredOptions } from '../../src/config/retired-options.ts';
import { loadFamilies, optionSections } from '../../src/config/sections.ts';
import { structuredParts } from '../../src/config/structured.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { run } from './command-line.ts';

const registry = createRegistry(optionSections(await loadFamilies(familyLoaders)), structuredParts);
const retired = [...retiredOptions(registry)];
const folder = mkdtempSync(join(tmpdir(), 'device-agent-retired-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const nested = (key: string): object => key.split('.').reduceRight<unknown>((inner, part) => ({ [part]: inner }), '1m') as object;

describe('an option that is gone', () => {
  it('is no option any more, and names one that is, or says that its value is constant', () => {
    const known = new Set(registry.entries.map(({ key }) => key));
    expect(retired.filter(([key]) => known.has(key))).toEqual([]);
    for (const [key, problem] of retired) {
      const named = [...problem.matchAll(/\b[a-z]+\.[a-z]+\b/g)].map(([name]) => name);
      expect(
        named.every((name) => known.has(name)),
        `${key} ${problem}`,
      ).toBe(true);
      if (named.length === 0) expect(problem).toContain('the value is constant');
    }
  });

  it.each(retired)('%s is refused as a variable and in the file', async (key, problem) => {
    const variable = variableOf(key);
    await expect(loadConfiguration(registry, { [variable]: '1m' }, new Map())).rejects.toThrow(
      `environment variable ${variable}: ${problem}`,
    );
    const file = join(folder, 'agent.yaml');
    writeFileSync(file, JSON.stringify(nested(key)));
    await expect(loadConfiguration(registry, {}, new Map([['config.file', file]]))).rejects.toThrow(`${key} ${problem}`);
  });

  it.each([
    ['--probe.nvme.smart-interval=10m', 'set refresh.slow'],
    ['--web.max-requests', 'the value is constant'],
    ['--probe.tpu.include=0', 'device.exclude'],
    ['--probe.nvidia.kmsg=/x', 'set path.kmsg'],
  ])('as the flag %s ends the command with 2, and says what to do', async (flag, words) => {
    const { status, stdout, stderr } = await run(['serve', flag]);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toContain(words);
    expect(stderr.trimEnd().split('\n')).toHaveLength(2);
  });

  it('ends a command with 2 and no trace, given by the environment or by the file', async () => {
    const file = join(folder, 'old.yaml');
    writeFileSync(file, 'usage:\n  zero-for: 1m\nstall: {power-percent: 20}\n');
    const byFile = await run(['config', 'check', `--config.file=${file}`]);
    expect(byFile.status).toBe(2);
    expect(byFile.stderr).toContain(`${file}:2:3: usage.zero-for is no longer an option: remove it: the value is constant`);
    expect(byFile.stderr).toContain(`${file}:3:9: stall.power-percent is no longer an option`);
    const byVariable = await run(['config', 'check'], { DEVICE_AGENT_PROBE_NVIDIA_TIMEOUT: '5s' });
    expect(byVariable.status).toBe(2);
    expect(byVariable.stderr).toContain('DEVICE_AGENT_PROBE_NVIDIA_TIMEOUT: is no longer an option');
    for (const { stderr } of [byFile, byVariable]) expect(stderr).not.toMatch(/^\s+at |is a bug/m);
  });
});
