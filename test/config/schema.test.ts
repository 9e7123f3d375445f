import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { loadConfiguration } from '../../src/config/configuration.ts';
import { checkConfigText } from '../../src/config/file.ts';
import { printYaml } from '../../src/config/print.ts';
import { fileSchema } from '../../src/config/schema.ts';
import { structuredParts } from '../../src/config/structured.ts';
import { testRegistry } from './registry.ts';

const registry = testRegistry();
const ajv = new Ajv({ allowUnionTypes: true, strict: true });
const validate = ajv.compile(fileSchema(registry));

describe('schema', () => {
  it('is draft-07 as its meta schema says', () => {
    expect(ajv.validateSchema(fileSchema(registry))).toBe(true);
  });

  it('judges files as the check does', async () => {
    const files: unknown[] = [
      {},
      { log: null },
      { log: { level: 'warn' } },
      { log: { level: 'loud' } },
      { log: { levle: 'warn' } },
      { refresh: { interval: '1m30s' } },
      { refresh: { interval: 'soon' } },
      { refresh: { interval: 5 } },
      { web: { 'max-connections': 0 } },
      { web: { 'max-connections': 1.5 } },
      { web: { 'max-connections': 2 } },
      { probe: { nvidia: { enabled: 'no' } } },
      { probe: { nvidia: { enabled: false, skip: ['a'] } } },
      { probe: { nvidia: false } },
      { probe: { amd: {} } },
      { join: { rules: [{ resource: 'a/b', devices: ['x'] }] } },
      { join: { rules: [{ resource: 'a/b', devices: [] }] } },
      { join: { rules: [{ resource: 'a/b' }] } },
      { join: { rules: {} } },
    ];
    const judged = await Promise.all(
      files.map(async (file) => (await checkConfigText('x', JSON.stringify(file), registry)).problems.length === 0),
    );
    expect(files.map((file) => validate(file))).toEqual(judged);
    expect(new Set(judged)).toEqual(new Set([true, false]));
  });

  it('has every option with its default', () => {
    for (const { filePath, spec } of registry.entries) {
      if (filePath === undefined) continue;
      const pointer = filePath.reduce<unknown>(
        (at, key) => (at as { properties: Record<string, unknown> }).properties[key],
        fileSchema(registry),
      );
      expect(pointer, filePath.join('.')).toMatchObject({ description: spec.help });
      expect(pointer).toHaveProperty('default');
    }
  });

  it('accepts default and example of each structured part', () => {
    for (const part of structuredParts) {
      for (const value of [part.default, part.example]) {
        const file = part.path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
        expect(validate(file), part.path).toBe(true);
      }
    }
  });
});

describe('printed configuration', () => {
  it('is a file that gives the same values', async () => {
    const environment = {
      DEVICE_AGENT_REFRESH_INTERVAL: '90s',
      DEVICE_AGENT_PROBE_NVIDIA_SKIP: 'a,#b: c',
      DEVICE_AGENT_WEB_LISTEN_ADDRESS: '[::1]:0',
    };
    const { configuration } = await loadConfiguration(registry, environment, new Map([['probe.nvidia', false]]));
    const text = await printYaml(configuration);
    expect(text).toContain('interval: 1m30s # environment DEVICE_AGENT_REFRESH_INTERVAL');
    expect(text).toContain('enabled: false # flag --no-probe.nvidia');
    expect(text).toContain('level: info # default');
    const { content } = await checkConfigText('x', text, registry);
    for (const { entry, value } of configuration.settings) {
      if (entry.filePath !== undefined) expect(content?.options.get(entry.key)?.value, entry.key).toEqual(value);
    }
  });
});
