import { describe, expect, it } from 'vitest';
import { healthPolicy } from '../../src/agent/health.ts';
import { resourcesWithoutEffect } from '../../src/agent/resources.ts';
import { agentSettings, checkMeaning } from '../../src/cli/settings.ts';
import { Configuration, loadConfiguration } from '../../src/config/configuration.ts';
import { createRegistry } from '../../src/config/registry.ts';
import { loadFamilies, optionSections } from '../../src/config/sections.ts';
import { healthPart, pluginResources, structuredParts } from '../../src/config/structured.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { pagesUrl } from '../../src/server/options.ts';

const families = await loadFamilies(familyLoaders);
const registry = createRegistry(optionSections(families), structuredParts);
const load = async (flags: Record<string, string | boolean>): Promise<Configuration> =>
  (await loadConfiguration(registry, {}, new Map(Object.entries(flags)))).configuration;

/** Families that are read without a setting. */
const usual = families.filter(({ isOffByDefault }) => isOffByDefault !== true);
const kinds = [...new Set(families.flatMap((family) => family.kinds ?? []))];

const check = (configuration: Configuration): void => checkMeaning(configuration, families);

describe('settings of the agent', () => {
  it('come from the values that hold', async () => {
    const settings = agentSettings(await load({ 'path.sysfs': '/x', 'refresh.interval': '3s', 'web.listen-address': ':1' }), families);
    expect(settings).toMatchObject({
      roots: { sysfs: '/x', procfs: '/proc' },
      refresh: { interval: 3_000 },
      web: { 'listen-address': ':1' },
      pools: [],
    });
    expect(settings.families.map(({ family }) => family.name)).toEqual(usual.map(({ name }) => name));
  });

  it('have no metrics page in the way of another one', async () => {
    for (const path of ['/healthz', '/readyz', '/-/ready', '/api/v1/devices', '/devices/nvidia/0'])
      await expect(load({ 'web.telemetry-path': path }).then(check), path).rejects.toThrow(
        /^web\.telemetry-path must not be a path of the API/,
      );
    await expect(load({ 'web.telemetry-path': '/apis' }).then(check)).resolves.toBeUndefined();
  });

  it('have an address for links with the name of the node, and refuse one that no page is at', async () => {
    const { web } = agentSettings(await load({ 'web.external-url': 'https://{node}.devices.example:8443/' }), families);
    expect(pagesUrl(web, 'gpu-1')).toBe('https://gpu-1.devices.example:8443');
    expect(pagesUrl({ 'external-url': '' }, 'gpu-1')).toBeUndefined();
    for (const address of ['devices.example', 'ftp://{node}', 'https://devices.example/{node}', 'https://devices.example?node={node}'])
      await expect(load({ 'web.external-url': address }).then(check), address).rejects.toThrow(/^web\.external-url must be an address/);
    await expect(load({ 'web.grafana-url': 'grafana' }).then(check)).rejects.toThrow(/^web\.grafana-url must be an address/);
    await expect(load({ 'web.external-url': 'http://{node}:9835' }).then(check)).resolves.toBeUndefined();
  });

  it('leave out a family that is turned off, and give the others their own options', async () => {
    const [first, ...others] = usual;
    const settings = agentSettings(await load({ [`probe.${first?.name}`]: false }), families);
    expect(settings.families.map(({ family }) => family.name)).toEqual(others.map(({ name }) => name));
    for (const { family, options } of settings.families)
      expect(new Set(Object.keys(options))).toEqual(new Set([...Object.keys(family.options), 'exclude']));
  });

  it('tell a health policy that has no effect', async () => {
    const plain = await load({});
    const origin = { from: 'file', file: 'x', line: 1 } as const;
    const withPolicy = (type: string): Configuration =>
      new Configuration(plain.settings, [{ part: healthPart, value: { conditions: { [type]: { for: '1s' } } }, origin }]);
    const family = families.find(({ conditions }) => conditions.length > 0);
    const known = `${family?.name}.${family?.conditions[0]?.type}`;
    expect(healthPolicy(agentSettings(withPolicy(known), families)).problems).toEqual([]);
    expect(healthPolicy(agentSettings(withPolicy('infiniband.NoSuchThing'), families)).problems).toHaveLength(1);
  });

  it('tell that readings are old before there are newer ones', async () => {
    const settings = agentSettings(await load({ 'refresh.interval': '1m' }), families);
    expect(healthPolicy(settings).problems).toEqual([
      'health.stale-after: 1m is not longer than refresh.interval, 1m: every device is unknown between two readings',
    ]);
    expect(healthPolicy(agentSettings(await load({ 'refresh.interval': '59s' }), families)).problems).toEqual([]);
  });

  it('have no option whose variable Kubernetes might set for a service', async () => {
    const { isServiceLink } = await import('../../src/config/environment.ts');
    expect(registry.entries.filter(({ environment }) => isServiceLink(environment))).toEqual([]);
  });
});

describe('resources of the device plugin', () => {
  const served = async (...resources: readonly object[]): Promise<Configuration> => {
    const plain = await load({});
    const origin = { from: 'file', file: 'x.yaml', line: 7 } as const;
    return new Configuration(plain.settings, [{ part: pluginResources, value: resources, origin }]);
  };

  it('are none unless configured', async () => {
    const { plugin } = agentSettings(await load({ 'plugin.dir': '/p' }), families);
    expect(plugin).toMatchObject({ resources: [], options: { dir: '/p', registration: 'direct' } });
  });

  it('are refused together, in one sentence with their place', async () => {
    const select = { family: 'infiniband' };
    const wrong = await served(
      { resource: 'nothing', select },
      { resource: 'a.b/c', select, paths: ['/dev/x'] },
      { resource: 'a.b/c', select },
    );
    expect(() => check(wrong)).toThrow(
      /^plugin\.resources cannot be served: resource "nothing": .*; .*configured twice; .*offer the same devices.* \(file x\.yaml:7\)$/,
    );
    const right = await served({ resource: 'a.b/c', select });
    expect(() => check(right)).not.toThrow();
  });

  it.each([
    [{ family: 'infiniband', kind: 'pff' }, 'there is no kind "pff" in infiniband, only pf, vf, sf, function; did you mean pf?'],
    [{ kind: ['gpu', 'migg'] }, `there is no kind "migg", only ${kinds.join(', ')}; did you mean mig?`],
    [
      { family: 'infinband' },
      `there is no family "infinband", only ${families.map(({ name }) => name).join(', ')}; did you mean infiniband?`,
    ],
  ])('are refused when no device can match %j', async (select, problem) => {
    const wrong = await served({ resource: 'a.b/c', select });
    expect(() => check(wrong)).toThrow(`plugin.resources cannot be served: resource "a.b/c": ${problem} (file x.yaml:7)`);
  });

  it('are told when they will have no devices', async () => {
    const settings = agentSettings(await served({ resource: 'a.b/c', select: { family: 'infinband' } }), families);
    expect(resourcesWithoutEffect(settings)).toEqual([
      'plugin.resources: resource "a.b/c" selects from "infinband", which is not an enabled device family',
    ]);
    expect(resourcesWithoutEffect(agentSettings(await served({ resource: 'a.b/c', paths: ['/dev/ttyUSB*'] }), families))).toEqual([]);
  });
});
