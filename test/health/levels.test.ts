import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createHealthEngine, type HealthEngine } from '../../src/health/engine/engine.ts';
import type { HealthMemory } from '../../src/health/engine/memory.ts';
import { createStateFile } from '../../src/health/journal/state-file.ts';
import { createPolicy } from '../../src/health/policy/policy.ts';
import type { Device } from '../../src/model/device.ts';
import type { Finding, LevelFinding } from '../../src/model/health.ts';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { DEVICE, PORT, type Probed, probeMachine, probeRoot, smallMachine } from '../probes/infiniband/harness.ts';
import { device, OneDevice, policyFor, readAt, START, spec, types } from './one-device.ts';

const policy = policyFor([spec('Slow', { severity: 'degraded', forMs: 20_000, recoveryMs: 60_000 })]);
const runsAt = (level: number, instance = '1'): Finding => ({
  type: 'Slow',
  instance,
  reason: 'Because',
  message: `at ${level}`,
  level,
  tellsHighest: true,
});
const card = (identity: string | null = null): Device => ({ ...device(), identity });

/** Restarts the agent with the state of the last run, perhaps with another card. */
const next = (one: OneDevice, identity?: string): OneDevice =>
  new OneDevice(policy, JSON.parse(JSON.stringify(one.engine.state())) as HealthMemory, card(identity));

describe('a level condition', () => {
  it('holds while the level is below the highest seen, with the value in the message', () => {
    const one = new OneDevice(policy);
    expect(types(one.read(0, runsAt(400)))).toEqual([]);
    one.read(10, runsAt(200));
    expect(one.read(30, runsAt(200)).conditions).toMatchObject([{ type: 'Slow', instance: '1', message: 'at 200 (highest seen: 400)' }]);
    for (let at = 40; at < 100; at += 10) one.read(at, runsAt(400));
    expect(types(one.read(100, runsAt(400)))).toEqual([]);
    expect(one.story).toEqual(['raised Slow/1', 'healthy>degraded', 'cleared Slow/1', 'degraded>healthy']);
  });

  it('is kept for each part separately, and while a part reports nothing', () => {
    const one = new OneDevice(policy);
    one.read(0, runsAt(400), runsAt(100, '2'));
    one.read(10, runsAt(100, '2'));
    one.read(20, runsAt(200), runsAt(100, '2'));
    expect(types(one.read(40, runsAt(200), runsAt(100, '2')))).toEqual(['Slow/1']);
  });

  it('is unknown when the level is not a number', () => {
    const one = new OneDevice(policy);
    one.read(0, runsAt(400));
    one.read(10, runsAt(200));
    one.read(30, runsAt(200));
    for (let at = 40; at < 400; at += 10) expect(types(one.read(at, runsAt(Number.NaN)))).toEqual(['Slow/1']);
    for (let at = 400; at < 460; at += 10) one.read(at, runsAt(400));
    expect(types(one.read(460, runsAt(400)))).toEqual([]);
  });

  it('is known after a restart, whether the level fell before or during it', () => {
    for (const atTheEnd of [400, 200]) {
      const one = new OneDevice(policy, undefined, card('guid-a'));
      one.read(0, runsAt(400));
      one.read(10, runsAt(atTheEnd));
      const again = next(one, 'guid-a');
      again.read(20, runsAt(200));
      expect(types(again.read(40, runsAt(200)))).toEqual(['Slow/1']);
    }
  });

  it('does not apply to another card of that name, and does to the first card when it returns', () => {
    const one = new OneDevice(policy, undefined, card('guid-a'));
    one.read(0, runsAt(400));
    one.read(10, runsAt(200));
    expect(types(one.read(30, runsAt(200)))).toEqual(['Slow/1']);
    const other = next(one, 'guid-b');
    for (let at = 40; at < 100; at += 10) other.read(at, runsAt(200));
    expect(types(other.read(100, runsAt(200)))).toEqual([]);
    const back = next(other, 'guid-a');
    expect(types(back.read(110, runsAt(200)))).toEqual(['Slow/1']);
  });

  it('does not apply while the identity cannot be read, nor to another card after it', () => {
    const one = new OneDevice(policy, undefined, card('guid-a'));
    one.read(0, runsAt(400));
    const nameless = next(one);
    nameless.read(10, runsAt(200));
    expect(nameless.read(30, runsAt(200)), 'nothing says which one it is').toMatchObject({ state: 'unknown', conditions: [] });
    const other = next(nameless, 'guid-b');
    for (let at = 40; at < 100; at += 10) other.read(at, runsAt(200));
    expect(types(other.read(100, runsAt(200)))).toEqual([]);
  });

  it('uses bounded memory, in which present parts take precedence', () => {
    const one = new OneDevice(policy);
    for (let at = 0; at < 40; at += 1) one.read(at, ...Array.from({ length: 10 }, (_, part) => runsAt(400, `${at}-${part}`)));
    expect(Object.keys(one.engine.state().devices['test/one']?.levels?.highest ?? {})).toHaveLength(256);
    one.read(50, runsAt(200, '39-1'));
    expect(types(one.read(70, runsAt(200, '39-1')))).toEqual(['Slow/39-1']);
  });

  it('uses no memory when no part has a level', () => {
    const one = new OneDevice(policy, undefined, card('guid-a'));
    one.read(0);
    expect(Object.values(one.engine.state().devices)[0]).not.toHaveProperty('levels');
  });
});

describe('a part that was never seen at its level', () => {
  const down = policyFor([spec('Down')]);
  const link = (isUp: boolean, rest: Partial<LevelFinding> = {}): Finding => ({
    type: 'Down',
    instance: '1',
    reason: 'Because',
    message: 'down',
    level: isUp,
    ...rest,
  });

  it('has no fault while nothing requires it, and has one after it was present', () => {
    const one = new OneDevice(down);
    for (const at of [0, 10, 20]) expect(one.read(at, link(false)).state).toBe('healthy');
    expect(one.read(30, link(true)).state).toBe('healthy');
    expect(one.read(40, link(false)).conditions).toMatchObject([{ type: 'Down', message: 'down' }]);
    one.restart();
    expect(one.read(50, link(false)).state).toBe('unhealthy');
    expect(one.read(60, link(true)).state).toBe('healthy');
  });

  it('has a fault when it is required, and stays required from then on', () => {
    const one = new OneDevice(down);
    expect(one.read(0, link(false, { atLeast: false })).state).toBe('healthy');
    expect(one.read(10, link(false, { atLeast: true })).state).toBe('unhealthy');
    expect(one.read(20, link(false, { atLeast: false })).state).toBe('unhealthy');
    expect(one.read(30, link(true, { atLeast: true })).state).toBe('healthy');
  });

  it('names the highest level only when the finding asks for it', () => {
    const one = new OneDevice(down);
    one.read(0, link(true));
    expect(one.read(10, link(false)).conditions[0]?.message).toBe('down');
  });
});

describe('a port that returns slower', () => {
  const undo: (() => void)[] = [];
  afterEach(() => {
    for (const step of undo.splice(0)) step();
  });
  const { policy: ports } = createPolicy({ specs: { infiniband: infiniband.conditions } });
  const RATE = 'RateDegraded/1';

  /** One run of the agent: the probe and the engine are new, the state file is kept. */
  async function life(machine: Probed, path: string, from: number, to: number): Promise<HealthEngine> {
    const file = createStateFile({ path, bootId: 'this-boot' });
    const { state } = await file.read();
    const engine = createHealthEngine({ policy: ports, ...(state === undefined ? {} : { state }) });
    const probe = probeRoot(machine.root);
    for (let at = from; at <= to; at += 10) {
      probe.clock.nowMs = at * 1_000;
      const { reports } = probe.collect();
      const devices = reports.map((report) => readAt(report.device, START + at * 1_000, report.read?.findings));
      engine.judge({ devices }, START + at * 1_000);
    }
    expect(await file.write(engine.state())).toBeUndefined();
    return engine;
  }
  const isSlow = (engine: HealthEngine): boolean =>
    Object.values(engine.state().devices).some(
      ({ conditions, isDisplaced }) => isDisplaced !== true && conditions[RATE]?.phase === 'active',
    );

  it('stays degraded over restarts of the agent, until another card replaces it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'device-agent-levels-'));
    undo.push(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, 'health.json');
    const machine = probeMachine(smallMachine({ [`${DEVICE}/node_guid`]: '0000:0000:0000:000a\n' }));
    undo.push(() => machine.remove());
    expect(isSlow(await life(machine, path, 0, 30))).toBe(false);
    writeFileSync(join(machine.root, `${PORT}/rate`), '200 Gb/sec (2X NDR)\n');
    expect(isSlow(await life(machine, path, 40, 70))).toBe(true);
    expect(isSlow(await life(machine, path, 80, 200))).toBe(true);
    writeFileSync(join(machine.root, `${DEVICE}/node_guid`), '0000:0000:0000:000b\n');
    expect(isSlow(await life(machine, path, 210, 300))).toBe(false);
  });
});
