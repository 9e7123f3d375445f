import { expect, it } from 'vitest';
import { usageOptions } from '../../src/accounting/options.ts';
import { AgentCore } from '../../src/agent/core.ts';
import { HealthService } from '../../src/agent/health.ts';
import type { AgentSettings } from '../../src/agent/settings.ts';
import type { Clock } from '../../src/host/clock.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import { defaultValues } from '../../src/model/options.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { IsolatedReads } from '../../src/supervisor/isolated-reads.ts';
import type { ProbeThread, ThreadListener } from '../../src/supervisor/probe-thread.ts';
import { device, listed, report } from '../support/snapshots.ts';

/** A clock whose timers run only when the test moves it. */
class TestClock implements Clock {
  #ms = 0;
  #timers: { readonly atMs: number; readonly run: () => void }[] = [];
  now = (): number => this.#ms;
  monotonic = (): number => this.#ms;

  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.#ms + delayMs, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  }

  advance(ms: number): void {
    this.#ms += ms;
    const due = this.#timers.filter(({ atMs }) => atMs <= this.#ms);
    this.#timers = this.#timers.filter((one) => !due.includes(one));
    for (const { run } of due) run();
  }
}

const family = (name: string): DeviceFamily =>
  ({
    name,
    summary: name,
    metrics: [],
    problems: [],
    options: {},
    conditions: [
      {
        type: 'Broken',
        class: 'self-clearing',
        severity: 'fatal',
        reasons: ['Because'],
        meaning: 'For a test.',
        remedy: 'reset',
        source: 'this test',
      },
    ],
    createProbe: () => undefined,
  }) as unknown as DeviceFamily;

const card = (name: string, isBroken = false): DeviceReport =>
  report({
    device: device({ id: `${name}-0`, family: name }),
    findings: [{ type: 'Broken', status: isBroken, reason: 'Because', message: '' }],
  });

/** Two families whose collections end when the test says so. `ends` moves the clock too. */
async function node() {
  const clock = new TestClock();
  const logger = createLogger({ level: 'error', format: 'text' }, { write: () => true });
  const settings = {
    roots: { sysfs: '/nonexistent', procfs: '/nonexistent', dev: '/nonexistent' },
    refresh: { interval: 10_000, timeout: 10_000, 'stale-after': 60_000 },
    device: { 'missing-retention': 60_000 },
    podResources: { socket: '/nonexistent', checkpoint: '', timeout: 1_000, hold: 0, 'restart-grace': 0, 'min-interval': 0 },
    dra: { 'metadata-dir': '' },
    cdi: { dirs: [] },
    families: ['quick', 'slow'].map((name) => ({ family: family(name), options: {} })),
    pools: [],
    health: {},
    expect: {},
    idle: {},
    usage: defaultValues(usageOptions),
    plugin: { options: {}, resources: [] },
    state: { file: '' },
  } as unknown as AgentSettings;
  const threads = new Map<string, { run: number; readonly listener: ThreadListener }>();
  const health = await HealthService.open(settings, logger, clock, false);
  const core = new AgentCore(settings, health, logger, clock, {
    isolated: new IsolatedReads(clock),
    start: ({ family: name }, _, listener): ProbeThread => {
      const thread = { run: 0, listener };
      threads.set(name, thread);
      let exit = (): void => {};
      const exited = new Promise<void>((resolve) => {
        exit = resolve;
      });
      return {
        exited,
        hasExited: false,
        step: () => undefined,
        terminate: () => exit(),
        send: (message) => {
          if (message.type === 'collect') thread.run = message.run;
          else exit();
        },
      };
    },
  });
  const ends = (name: string, isBroken = false): void => {
    const { listener, run } = threads.get(name) as { run: number; listener: ThreadListener };
    listener.received({ type: 'collected', run, collection: listed([card(name, isBroken)]), durationMs: 1 });
  };
  const sequence = (): number => core.store.snapshot()?.sequence ?? 0;
  return { clock, core, ends, sequence };
}

it('makes one snapshot of a refresh that tells nothing new', async () => {
  const { clock, core, ends, sequence } = await node();
  const refresh = async (isBroken: boolean, slowMs: number): Promise<number> => {
    const before = sequence();
    const done = core.refreshFamilies(() => true);
    clock.advance(10);
    ends('quick', isBroken);
    clock.advance(slowMs);
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
