import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AgentSettings } from '../../src/agent/settings.ts';
import type { CommandContext } from '../../src/cli/context.ts';
import { ConfigReload } from '../../src/cli/serve/config-reload.ts';
import { loadConfiguration } from '../../src/config/configuration.ts';
import { readFamilyDirectory } from '../../src/config/families/family-directory.ts';
import { createRegistry } from '../../src/config/registry.ts';
import { loadFamilies, optionSections } from '../../src/config/sections.ts';
import { structuredParts } from '../../src/config/structured.ts';
import type { Clock } from '../../src/host/clock.ts';
import { createLogger } from '../../src/log/logger.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { ACME } from '../probes/declared/support.ts';

const families = await loadFamilies(familyLoaders);
const registry = createRegistry(optionSections(families), structuredParts);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-reload-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A file, its reload, and the settings that an agent got; `poll` lets the agent read the file once. */
async function watched(text: string, declared?: CommandContext['declared']) {
  const file = join(folder, 'agent.yaml');
  const write = (content: string): void => writeFileSync(file, content);
  write(text);
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', format: 'text' }, { write: (line) => lines.push(line.replace(/^\S+ /, '').trimEnd()) });
  const flags = new Map([['config.file', file]]);
  const { configuration } = await loadConfiguration(registry, {}, flags);
  const timers = new Set<{ readonly delayMs: number; run(): void }>();
  const clock: Clock = {
    now: () => 1_000,
    monotonic: () => 0,
    after(delayMs, run) {
      const timer = { delayMs, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  };
  const context = {
    configuration,
    registry,
    environment: {},
    flags,
    families,
    declared,
    logger,
    options: {},
  } as unknown as CommandContext;
  const reload = ConfigReload.of(context, clock) as ConfigReload;
  const applied: AgentSettings[] = [];
  reload.start({ apply: async (settings) => void applied.push(settings) });
  const pollTimer = () => [...timers].find(({ delayMs }) => [5_000, 2_000].includes(delayMs));
  const poll = async (): Promise<void> => {
    const timer = pollTimer();
    if (timer !== undefined) timers.delete(timer);
    timer?.run();
    await expect.poll(() => pollTimer(), { interval: 1 }).toBeDefined();
  };
  return { file, write, reload, applied, lines, poll };
}

describe('a watched configuration file', () => {
  it('is used when two reads in a row return it, so never while it is being written', async () => {
    const { write, applied, poll } = await watched('refresh: {interval: 5s}');
    write('');
    await poll();
    write('refresh: {interval: 6s}');
    await poll();
    expect(applied).toEqual([]);
    await poll();
    expect(applied.map(({ refresh }) => refresh.interval)).toEqual([6_000]);
    await poll();
    expect(applied).toHaveLength(1);
  });

  it('keeps the last valid values while it is gone or wrong, with one line for each cause', async () => {
    const { file, write, applied, lines, poll, reload } = await watched('refresh: {interval: 5s}');
    write('refresh: {interval: -1}\nlog: {level: x}');
    for (let times = 0; times < 4; times++) await poll();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^WARN {2}the configuration file cannot be used; .*agent\.yaml:1:\d+: .*; .*agent\.yaml:2:\d+: .* remedy="/);
    expect(reload.status()).toMatchObject({ file, problem: { message: expect.stringContaining('is not valid: ') } });
    rmSync(file);
    for (let times = 0; times < 4; times++) await poll();
    expect(lines.filter((line) => line.startsWith('WARN'))).toHaveLength(2);
    expect(await reload.reload()).toMatch(/cannot be read/);
    write('refresh: {interval: 5s}');
    for (let times = 0; times < 2; times++) await poll();
    expect(reload.status().problem).toBeUndefined();
    expect(applied, 'the values never changed').toEqual([]);
  });

  it('changes the level of the log', async () => {
    const { write, lines, reload } = await watched('log: {level: info}');
    write('log: {level: warn}');
    expect(await reload.reload()).toBeUndefined();
    expect(lines).toEqual([]);
  });

  it('says what waits for the next start', async () => {
    const { file, write, lines, reload } = await watched('');
    write('web: {listen-address: ":1"}');
    await reload.reload();
    expect(lines).toEqual([
      `INFO  configuration reloaded file=${file} changed=nothing`,
      'WARN  some changes take effect at the next start of the agent options=web.listen-address',
    ]);
    expect(reload.status().waiting).toEqual(['web.listen-address']);
  });
});

describe('the declarations of families', () => {
  it('are checked at a reload: a wrong one keeps everything as it is, another one waits for the next start', async () => {
    const path = join(folder, 'families');
    mkdirSync(path, { mode: 0o755 });
    const put = (content: string): void => writeFileSync(join(path, 'acme.yaml'), content, { mode: 0o644 });
    put(ACME);
    const directory = { path, isGiven: true };
    const { write, reload, applied } = await watched('refresh: {interval: 5s}', {
      directory,
      ...(await readFamilyDirectory(directory)),
    });
    write('refresh: {interval: 6s}');
    expect(await reload.reload()).toBeUndefined();
    expect([applied.length, reload.status().waiting]).toEqual([1, []]);
    put(ACME.replace('scale: 0.001', 'scale: tiny'));
    write('refresh: {interval: 7s}');
    expect(await reload.reload()).toMatch(/acme\.yaml:\d+:\d+: readings\[0\]\.scale must be a number/);
    expect(applied).toHaveLength(1);
    put(ACME.replace('scale: 0.001', 'scale: 0.01'));
    expect(await reload.reload()).toBeUndefined();
    expect([applied.length, reload.status().waiting]).toEqual([2, ['family.dir']]);
    put(ACME);
    expect(await reload.reload()).toBeUndefined();
    expect(reload.status().waiting).toEqual([]);
  });
});
