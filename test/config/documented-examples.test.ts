import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { healthPolicy } from '../../src/agent/health.ts';
import type { AgentSettings } from '../../src/agent/settings.ts';
import { agentSettings, checkMeaning } from '../../src/cli/settings.ts';
import { loadConfiguration } from '../../src/config/configuration.ts';
import { createRegistry } from '../../src/config/registry.ts';
import { loadFamilies, optionSections } from '../../src/config/sections.ts';
import { structuredParts } from '../../src/config/structured.ts';
import { systemClock } from '../../src/host/clock.ts';
import { Tree } from '../../src/host/fs/tree.ts';
import { createHost } from '../../src/host/host.ts';
import { Resolver } from '../../src/join/resolve.ts';
import { selectorsOf } from '../../src/model/plugin-resource.ts';
import type { DeviceState } from '../../src/model/snapshot.ts';
import { findPaths } from '../../src/plugin/offers/device-paths.ts';
import { selectDevices } from '../../src/plugin/offers/inventory.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import { SimulatedNode } from '../../src/sim/node.ts';
import { simulationOptions } from '../../src/sim/options.ts';
import { deviceState } from '../plugin/support.ts';

const families = await loadFamilies(familyLoaders);
const registry = createRegistry(optionSections(families), structuredParts);
const folder = mkdtempSync(join(tmpdir(), 'device-agent-examples-'));
const sizes = Object.fromEntries(Object.entries(simulationOptions).map(([name, spec]) => [name, spec.default])) as never;
const node = new SimulatedNode(simulatedFamilies, sizes);

/** The first keys of the agent's file. */
const SECTIONS = new Set([
  ...registry.entries.flatMap(({ filePath }) => filePath?.[0] ?? []),
  ...structuredParts.map(({ path }) => path.split('.')[0]),
]);

/** The agent's file in a block of YAML: all of it, or the value `config` of the chart. Other files have none of its sections. */
function fileIn(text: string): string | undefined {
  const content = parse(text) as Readonly<Record<string, unknown>>;
  if (typeof content.config === 'object') return stringify(content.config);
  return Object.keys(content).some((key) => SECTIONS.has(key)) && !('image' in content) && !('kind' in content) ? text : undefined;
}

/** Every block of YAML in the documentation that is a part of the agent's file. */
const documents = ['README.md', ...readdirSync('docs', { recursive: true, encoding: 'utf8' }).map((name) => join('docs', name))].filter(
  // The example of that page needs the family that the page declares; its own test runs it.
  (name) => name.endsWith('.md') && name !== 'docs/declare-a-family.md',
);
const examples = [
  ...documents.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/^```ya?ml\n(.*?)^```$/gms)].flatMap(([, block = ''], n) => {
      const text = fileIn(block);
      return text === undefined ? [] : [{ name: `${path}, block ${n + 1}`, text }];
    }),
  ),
  { name: 'the file of the demo', text: undefined },
];

async function settingsOf(text: string | undefined): Promise<AgentSettings> {
  const flags = new Map(node.flags().map((flag) => /^--([^=]+)=(.*)$/s.exec(flag)?.slice(1) as [string, string]));
  if (text !== undefined) {
    writeFileSync(join(folder, 'example.yaml'), text);
    flags.set('config.file', join(folder, 'example.yaml'));
  }
  const { configuration } = await loadConfiguration(registry, {}, flags);
  checkMeaning(configuration, families);
  return agentSettings(configuration, families);
}

const states: DeviceState[] = [];

beforeAll(async () => {
  await node.start();
  const settings = await settingsOf(undefined);
  for (const { family, options } of settings.families) {
    const probe = family.createProbe(createHost(settings.roots, systemClock), options as never);
    states.push(...(await probe.collect()).reports.map(({ device }) => deviceState(device)));
    await probe.close?.();
  }
});

afterAll(async () => {
  await node.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('configuration in the documentation, on the node of the demo', () => {
  it('is found', () => {
    expect(examples.length).toBeGreaterThanOrEqual(6);
  });

  it.each(examples)('$name: each selector, path and pattern stands for a device', async ({ text }) => {
    const settings = await settingsOf(text);
    const devices = states.map(({ device }) => device);
    const idle: string[] = [];
    for (const { resource, select, paths } of settings.plugin.resources) {
      for (const selector of selectorsOf(select)) {
        if (selectDevices({ resource, select: selector }, states).length === 0) idle.push(`${resource}: ${JSON.stringify(selector)}`);
      }
      for (const path of paths ?? []) if (findPaths([path], new Tree(settings.roots.dev)).length === 0) idle.push(`${resource}: ${path}`);
    }
    for (const { resource, devices: patterns } of settings.pools) {
      for (const pattern of patterns) {
        const resolver = new Resolver(devices, { pools: [{ resource, devices: [pattern] }], families: new Map() });
        const found = resolver.resolve({ resource, deviceId: '0' } as never);
        if (found.devices.length === 0) idle.push(`${resource}: ${pattern}`);
      }
    }
    for (const { device } of settings.health.ignore ?? []) {
      if (device !== undefined && !devices.some(({ id, aliases }) => [id, ...aliases].includes(device)))
        idle.push(`health.ignore: ${device}`);
    }
    expect(idle).toEqual([]);
    expect(healthPolicy(settings).problems).toEqual([]);
  });
});
