import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AgentCore } from '../../src/agent/core.ts';
import type { HealthService } from '../../src/agent/health.ts';
import { systemClock } from '../../src/host/clock.ts';
import { createLogger } from '../../src/log/logger.ts';
import { buildWithFamilies, type OtherBuild } from '../support/other-families.ts';
import { coreSettings } from './core-settings.ts';
import { family } from './forgetful-family.ts';

let build: OtherBuild;
beforeAll(() => {
  build = buildWithFamilies({ fpga: 'test/agent/forgetful-family.ts' });
});
afterAll(() => rmSync(build.root, { recursive: true, force: true }));

it('keeps an error that only the replaced probe knew, until the new probe reports its end', async () => {
  const sysfs = join(build.root, 'sys');
  mkdirSync(sysfs);
  const { AgentCore: Core } = await build.import<{ AgentCore: typeof AgentCore }>('agent/core.js');
  const { HealthService: Keeper } = await build.import<{ HealthService: typeof HealthService }>('agent/health.js');
  const logger = createLogger({ level: 'error', format: 'text' }, { write: () => true });
  const settings = coreSettings([{ family, options: {} }], sysfs, join(build.root, 'no.sock'));
  const health = await Keeper.open(settings, logger, systemClock, true);
  const core = new Core(settings, health, logger, systemClock);
  const read = async (): Promise<string | undefined> => {
    await core.refresh();
    core.assemble();
    return core.store.snapshot()?.devices[0]?.verdict.state;
  };
  const inSys = (name: string): string => join(sysfs, name);

  expect(await read()).toBe('healthy');
  writeFileSync(inSys('log'), '79');
  expect(await read()).toBe('unhealthy');
  writeFileSync(inSys('log'), '');
  expect(await read(), 'the probe remembers').toBe('unhealthy');
  writeFileSync(inSys('throw'), '');
  await read();
  rmSync(inSys('throw'));
  expect(await read(), 'its successor never heard of it').toBe('unhealthy');
  expect(await read()).toBe('unhealthy');
  writeFileSync(inSys('reset'), '');
  expect(await read()).toBe('healthy');
  expect(await core.close()).toBe(true);
  await health.close();
});
