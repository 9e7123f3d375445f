import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeOrigin, type Flags, loadConfiguration } from '../../src/config/configuration.ts';
import { isServiceLink } from '../../src/config/environment.ts';
import { poolRules } from '../../src/config/structured.ts';
import { UserError } from '../../src/errors.ts';
import { testRegistry } from './registry.ts';

let folder: string;
let file: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-config-'));
  file = join(folder, 'agent.yaml');
  writeFileSync(
    file,
    ['log:', '  level: warn', 'refresh:', '  interval: 30s', 'probe:', '  nvidia:', '    enabled: false', 'join:', '  rules:'].join('\n') +
      '\n    - {resource: rdma/hca_shared, devices: [mlx5_0]}\n',
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const load = async (flags: Record<string, string | boolean>, environment: Record<string, string> = {}) =>
  await loadConfiguration(testRegistry(), environment, new Map(Object.entries(flags)) as Flags);

describe('precedence', () => {
  it.each<[string, Record<string, string | boolean>, Record<string, string>, unknown, string]>([
    ['default', {}, {}, 'info', 'default'],
    ['file over default', { 'config.file': 'FILE' }, {}, 'warn', 'file FILE:2'],
    [
      'environment over file',
      { 'config.file': 'FILE' },
      { DEVICE_AGENT_LOG_LEVEL: 'debug' },
      'debug',
      'environment DEVICE_AGENT_LOG_LEVEL',
    ],
    ['flag over environment', { 'log.level': 'error' }, { DEVICE_AGENT_LOG_LEVEL: 'debug' }, 'error', 'flag --log.level'],
    ['flag over all, even with the default as value', { 'config.file': 'FILE', 'log.level': 'info' }, {}, 'info', 'flag --log.level'],
    ['an empty variable is none', {}, { DEVICE_AGENT_LOG_LEVEL: '' }, 'info', 'default'],
    ['the file named by its variable', {}, { DEVICE_AGENT_CONFIG_FILE: 'FILE' }, 'warn', 'file FILE:2'],
  ])('%s', async (_name, flags, environment, value, origin) => {
    const real = <T extends string | boolean>(record: Record<string, T>) =>
      Object.fromEntries(Object.entries(record).map(([key, text]) => [key, text === 'FILE' ? file : text]));
    const { configuration } = await load(real(flags), real(environment) as Record<string, string>);
    const setting = configuration.setting('log.level');
    expect(setting.value).toBe(value);
    expect(describeOrigin(setting.origin)).toBe(origin.replace('FILE', file));
  });

  it('turns a family off in each of the three places, and on again by flag', async () => {
    expect((await load({ 'config.file': file })).configuration.isOn('probe.nvidia')).toBe(false);
    expect((await load({}, { DEVICE_AGENT_PROBE_NVIDIA: 'false' })).configuration.isOn('probe.nvidia')).toBe(false);
    const off = (await load({ 'probe.nvidia': false })).configuration.setting('probe.nvidia');
    expect([off.value, describeOrigin(off.origin)]).toEqual([false, 'flag --no-probe.nvidia']);
    expect((await load({ 'probe.nvidia': true, 'config.file': file })).configuration.isOn('probe.nvidia')).toBe(true);
  });

  it('hands a part its own values, durations in milliseconds', async () => {
    const registry = testRegistry();
    const section = registry.sections.find(({ path }) => path === 'refresh');
    const { configuration } = await load({ 'config.file': file });
    expect(configuration.section('refresh', section?.options ?? {})).toEqual({ interval: 30_000 });
  });

  it('keeps structured parts with their line', async () => {
    const { configuration } = await load({ 'config.file': file });
    expect(configuration.part(poolRules)).toEqual([{ resource: 'rdma/hca_shared', devices: ['mlx5_0'] }]);
    expect(describeOrigin(configuration.structured[0]?.origin ?? { from: 'default' })).toBe(`file ${file}:9`);
    expect((await load({})).configuration.part(poolRules)).toEqual([]);
  });
});

describe('wrong values', () => {
  it.each<[string, Record<string, string>, Record<string, string>, string]>([
    ['flag', { 'refresh.interval': 'soon' }, {}, 'flag --refresh.interval: must be a duration'],
    [
      'variable',
      {},
      { DEVICE_AGENT_WEB_MAX_CONNECTIONS: 'many' },
      'environment variable DEVICE_AGENT_WEB_MAX_CONNECTIONS: must be an integer',
    ],
    [
      'missing file',
      { 'config.file': '/does/not/exist.yaml' },
      {},
      'configuration file /does/not/exist.yaml cannot be read: ENOENT: no such file or directory',
    ],
    ['directory', { 'config.file': tmpdir() }, {}, 'cannot be read: not a regular file'],
  ])('%s', async (_name, flags, environment, message) => {
    const error = await load(flags, environment).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).message).toContain(message);
    expect((error as UserError).exit).toBe(2);
  });

  it('names who gave the path of an unreadable file', async () => {
    const error = await load({}, { DEVICE_AGENT_CONFIG_FILE: '/nope' }).catch((caught: unknown) => caught);
    expect((error as UserError).remedy).toContain('environment DEVICE_AGENT_CONFIG_FILE');
  });
});

describe('variables that look like ours', () => {
  it('names the nearest known one', async () => {
    const { unknownVariables } = await load({}, { DEVICE_AGENT_LOG_LEVL: 'debug', DEVICE_AGENT_ZZZ: '1', OTHER: '1' });
    expect(unknownVariables).toEqual([
      { variable: 'DEVICE_AGENT_LOG_LEVL', nearest: 'DEVICE_AGENT_LOG_LEVEL' },
      { variable: 'DEVICE_AGENT_ZZZ' },
    ]);
  });

  it('leaves alone what the device plugin gives to containers', async () => {
    expect((await load({}, { DEVICE_AGENT_DEVICES_EXAMPLE_COM_HCA: 'mlx5_0' })).unknownVariables).toEqual([]);
  });

  it('leaves alone what Kubernetes sets for a service called device-agent', async () => {
    const links = {
      DEVICE_AGENT_SERVICE_HOST: '10.0.0.1',
      DEVICE_AGENT_SERVICE_PORT: '9835',
      DEVICE_AGENT_SERVICE_PORT_METRICS: '9835',
      DEVICE_AGENT_PORT: 'tcp://10.0.0.1:9835',
      DEVICE_AGENT_PORT_9835_TCP: 'tcp://10.0.0.1:9835',
      DEVICE_AGENT_PORT_9835_TCP_PROTO: 'tcp',
      DEVICE_AGENT_PORT_9835_TCP_PORT: '9835',
      DEVICE_AGENT_PORT_9835_TCP_ADDR: '10.0.0.1',
    };
    expect((await load({}, links)).unknownVariables).toEqual([]);
    expect(Object.keys(links).filter((variable) => !isServiceLink(variable))).toEqual([]);
  });
});
