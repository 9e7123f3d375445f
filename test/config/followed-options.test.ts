import { describe, expect, it } from 'vitest';
import { usageOptions } from '../../src/accounting/options.ts';
import { agentSettings } from '../../src/cli/settings.ts';
import { loadConfiguration } from '../../src/config/configuration.ts';
import { createRegistry } from '../../src/config/registry.ts';
import { loadFamilies, optionSections } from '../../src/config/sections.ts';
import { structuredParts } from '../../src/config/structured.ts';
import { familyLoaders } from '../../src/probes/families.ts';

const families = await loadFamilies(familyLoaders);
const registry = createRegistry(optionSections(families), structuredParts);

/** Options of the families with these flags. */
async function probes(flags: Readonly<Record<string, string>> = {}): Promise<Readonly<Record<string, Readonly<Record<string, unknown>>>>> {
  const { configuration } = await loadConfiguration(registry, {}, new Map(Object.entries(flags)));
  return Object.fromEntries(agentSettings(configuration, families).families.map(({ family, options }) => [family.name, options]));
}

const S = 1_000;
const MINUTE = 60 * S;

describe('the time between two reads', () => {
  const pick = ({ nvidia, nvme, amdgpu, fpga, infiniband }: Awaited<ReturnType<typeof probes>>) => ({
    links: nvidia?.['nvml-slow-every'],
    limits: nvidia?.['nvml-facts-every'],
    temperatures: nvme?.['temperature-interval'],
    smart: nvme?.['smart-interval'],
    errors: amdgpu?.['ras-interval'],
    pages: amdgpu?.['bad-pages-interval'],
    sensors: fpga?.['sensor-interval'],
    guids: infiniband?.['facts-interval'],
  });

  it('is by default what the hardware of each family bears', async () => {
    expect(pick(await probes())).toEqual({
      links: 30 * S,
      limits: 5 * MINUTE,
      temperatures: MINUTE,
      smart: 5 * MINUTE,
      errors: MINUTE,
      pages: 10 * MINUTE,
      sensors: 30 * S,
      guids: MINUTE,
    });
  });

  it('is never shorter than that, and longer with the option', async () => {
    expect(pick(await probes({ 'refresh.slow': '2m', 'refresh.facts': '1s' }))).toEqual({
      links: 2 * MINUTE,
      limits: 5 * MINUTE,
      temperatures: 2 * MINUTE,
      smart: 5 * MINUTE,
      errors: 2 * MINUTE,
      pages: 10 * MINUTE,
      sensors: 2 * MINUTE,
      guids: MINUTE,
    });
  });

  it('is each refresh with 0', async () => {
    expect(new Set(Object.values(pick(await probes({ 'refresh.slow': '0', 'refresh.facts': '0' }))))).toEqual(new Set([0]));
  });
});

describe('device.exclude', () => {
  it('reaches each family with the patterns that name it or none', async () => {
    const { infiniband, nvidia, tpu } = await probes({ 'device.exclude': 'infiniband/mlx5_1,accel0,nvidia/GPU-*' });
    expect([infiniband?.exclude, nvidia?.exclude, tpu?.exclude]).toEqual([['mlx5_1', 'accel0'], ['accel0', 'GPU-*'], ['accel0']]);
  });
});

describe('a constant', () => {
  it('has its value, and no flag, variable or key', async () => {
    const { configuration } = await loadConfiguration(registry, {}, new Map());
    expect(configuration.section('usage', usageOptions)['zero-for']).toBe(MINUTE);
    expect(registry.entries.map(({ key }) => key)).not.toContain('usage.zero-for');
  });
});
