import { expect, it } from 'vitest';
import { AgentCore } from '../../src/agent/core.ts';
import { HealthService } from '../../src/agent/health.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { spec } from '../health/one-device.ts';
import { VirtualClock } from '../oracle/virtual-clock.ts';
import { type Answer, scriptedReaders } from '../support/scripted-reader.ts';
import { device, listed, report } from '../support/snapshots.ts';
import { coreSettings } from './core-settings.ts';

const family = (name: string): DeviceFamily =>
  ({
    name,
    summary: name,
    metrics: [],
    problems: [],
    options: {},
    conditions: [spec('Broken')],
    createProbe: () => undefined,
  }) as unknown as DeviceFamily;

const card = (name: string, isBroken = false): DeviceReport =>
  report({
    device: device({ id: `${name}-0`, family: name }),
    findings: [{ type: 'Broken', status: isBroken, reason: 'Because', message: '' }],
  });

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Two families whose collections end when the test calls `ends`. */
async function node() {
  const clock = new VirtualClock();
  const logger = createLogger({ level: 'error', format: 'text' }, { write: () => true });
  const settings = coreSettings(
    ['quick', 'slow'].map((name) => ({ family: family(name), options: {} })),
    '/nonexistent',
    '/nonexistent',
  );
  const answers = new Map<string, Answer>();
  const health = await HealthService.open(settings, logger, clock, false);
  const core = new AgentCore(settings, health, logger, clock, {
    start: scriptedReaders(({ family: name }, answer) => answers.set(name, answer)),
  });
  const ends = (name: string, isBroken = false): void => {
    answers.get(name)?.(listed([card(name, isBroken)]));
  };
  const sequence = (): number => core.store.snapshot()?.sequence ?? 0;
  return { clock, core, ends, sequence };
}

it('makes one snapshot of a refresh without news', async () => {
  const { clock, core, ends, sequence } = await node();
  const refresh = async (isBroken: boolean, slowMs: number): Promise<number> => {
    const before = sequence();
    const done = core.refreshFamilies(() => true);
    await clock.advance(10, settled);
    ends('quick', isBroken);
    await settled();
    await clock.advance(slowMs, settled);
    ends('slow');
    await done;
    return sequence() - before;
  };
  await refresh(false, 900);
  expect(await refresh(false, 900)).toBe(1);
  expect(await refresh(false, 900)).toBe(1);
  expect(await refresh(true, 900), 'another verdict is shown before the slow family ends').toBe(2);
  expect(await refresh(true, 900), 'the verdict is known').toBe(1);
  expect(await refresh(true, 1_100), 'a family that takes long holds up no other').toBe(2);
  await core.close();
});

it('waits after a snapshot for ten times as long as it took, except for the end of a refresh', async () => {
  const { clock, core, ends, sequence } = await node();
  const refresh = async (isBroken: boolean): Promise<void> => {
    const done = core.refreshFamilies(() => true);
    ends('quick', isBroken);
    ends('slow');
    await done;
  };
  await refresh(false);
  const cheap = core.store.subscribe(() => void clock.advance(50, settled));
  await refresh(false);
  cheap();
  const before = sequence();
  void core.runners.find(({ family: name }) => name === 'quick')?.refresh();
  ends('quick', true);
  await clock.advance(490, settled);
  expect(sequence() - before, 'the last snapshot took 50 ms').toBe(0);
  await clock.advance(20, settled);
  expect(sequence() - before).toBe(1);
  await refresh(false);
  expect(sequence() - before, 'a refresh does not wait').toBe(2);
  await core.close();
});
