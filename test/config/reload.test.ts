import { describe, expect, it } from 'vitest';
import { reloaded } from '../../src/cli/serve/config-reload.ts';
import { type Flags, loadConfiguration } from '../../src/config/configuration.ts';
import { createRegistry } from '../../src/config/registry.ts';
import { loadFamilies, optionSections } from '../../src/config/sections.ts';
import { poolRules, structuredParts } from '../../src/config/structured.ts';
import { familyLoaders } from '../../src/probes/families.ts';

const registry = createRegistry(optionSections(await loadFamilies(familyLoaders)), structuredParts);

/** The configuration that a file with this text gives, below these flags. */
const load = async (text: string, flags: Record<string, string> = {}) =>
  (await loadConfiguration(registry, {}, new Map(Object.entries({ 'config.file': '/etc/agent.yaml', ...flags })) as Flags, { text }))
    .configuration;

describe('another content of the file', () => {
  it('changes what a running agent takes, and names what waits for its next start', async () => {
    const running = await load('refresh: {interval: 5s}');
    const next = await load(
      'refresh: {interval: 7s}\nweb: {listen-address: ":1"}\nprobe: {fpga: {enabled: false, strict-port-errors: true}}\njoin: {rules: [{resource: a.b/c, devices: [x]}]}',
    );
    const { configuration, changed, waiting } = reloaded(running, next);
    expect(changed).toEqual(['refresh.interval', 'probe.fpga.strict-port-errors', 'join.rules']);
    expect(waiting).toEqual(['web.listen-address', 'probe.fpga']);
    expect(configuration.setting('refresh.interval').value).toBe(7_000);
    expect(configuration.setting('web.listen-address').value).toBe(':9835');
    expect(configuration.isOn('probe.fpga')).toBe(true);
    expect(configuration.part(poolRules)).toHaveLength(1);
    expect(configuration.file).toEqual(next.file);
  });

  it('tells again what waits, although other values change later', async () => {
    const first = reloaded(await load(''), await load('state: {file: ""}'));
    const second = reloaded(first.configuration, await load('state: {file: ""}\nlog: {level: debug}'));
    expect([second.changed, second.waiting]).toEqual([['log.level'], ['state.file']]);
    expect(reloaded(second.configuration, await load('')).waiting).toEqual([]);
  });

  it('changes nothing that a flag sets', async () => {
    const flags = { 'refresh.interval': '3s' };
    const { changed, waiting } = reloaded(await load('', flags), await load('refresh: {interval: 9s}', flags));
    expect([changed, waiting]).toEqual([[], []]);
  });
});
