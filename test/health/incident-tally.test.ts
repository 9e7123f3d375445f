import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import type { HealthMemory } from '../../src/health/engine/memory.ts';
import { createStateFile } from '../../src/health/journal/state-file.ts';
import type { Device } from '../../src/model/device.ts';
import { deviceKey } from '../../src/model/device.ts';
import { device, found, gone, OneDevice, policyFor, START, spec } from './one-device.ts';

const policy = policyFor([spec('Lost'), spec('Dead', { class: 'latched' }), spec('Hot', { severity: 'degraded' })]);
const card = (facts: Partial<Device>): Device => ({ ...device(), identity: 'serial-a', ...facts });

/** `state condition count`, as the metrics have them. */
function tallies(one: OneDevice, name = deviceKey(one.device)): readonly string[] {
  const found = Object.values(one.engine.memory()).find((memory) => memory.isDisplaced === undefined && deviceKey(memory.device) === name);
  return (found?.incidents ?? []).map(({ state, condition = '-', count }) => `${state} ${condition} ${count}`).toSorted();
}

/** The device fails and recovers. 13 hours are between two such times, so that it does not flap. */
function fail(one: OneDevice, time: number, type = 'Lost'): void {
  one.read(time * 46_800, gone(type));
  one.read(time * 46_800 + 20, found(type));
  one.read(time * 46_800 + 40, gone(type));
}

const followedBy = (one: OneDevice, next: Device): OneDevice =>
  new OneDevice(policy, JSON.parse(JSON.stringify(one.engine.state())) as HealthMemory, next);

describe('incidents of a device', () => {
  it('are counted by the state that it reached and the condition that led, each time anew', () => {
    const one = new OneDevice(policy);
    for (let time = 0; time < 3; time += 1) fail(one, time);
    fail(one, 3, 'Hot');
    expect(tallies(one)).toEqual(['degraded Hot 1', 'unhealthy Lost 3']);
  });

  it('count once for each state reached within ten seconds, and not as better states that follow', () => {
    const one = new OneDevice(policy);
    one.read(0);
    one.read(10, found('Hot'));
    one.read(12, found('Hot'), found('Lost'));
    expect(tallies(one)).toEqual(['degraded Hot 1', 'unhealthy Lost 1']);
    one.read(14, gone('Lost'), found('Hot'));
    one.read(16, found('Lost'), found('Hot'));
    one.read(60, gone('Lost'), found('Hot'));
    expect(tallies(one), 'the same heat is no other incident').toEqual(['degraded Hot 1', 'unhealthy Lost 1']);
  });

  it('do not count a fault again that only could not be seen for a while', () => {
    const one = new OneDevice(policy);
    one.read(0);
    one.read(10, found('Dead'));
    one.missing(30);
    one.read(60, found('Dead'));
    one.read(4_000, found('Dead'));
    expect(tallies(one).filter((line) => line.includes('Dead'))).toEqual(['unhealthy Dead 1']);
  });

  it('are one number, however often the device fails', () => {
    const one = new OneDevice(policy);
    for (let time = 0; time < 500; time += 1) fail(one, time);
    expect(tallies(one)).toEqual(['unhealthy Lost 500']);
  });

  it('go on after a restart of the agent', () => {
    const one = new OneDevice(policy);
    fail(one, 0);
    one.restart();
    fail(one, 1);
    one.restart();
    expect(tallies(one)).toEqual(['unhealthy Lost 2']);
  });

  it('follow the hardware to another name, and other hardware that takes the name begins without any', () => {
    const one = new OneDevice(policy, undefined, card({}));
    fail(one, 0);
    const renamed = followedBy(one, card({ id: 'two' }));
    fail(renamed, 1);
    expect(tallies(renamed)).toEqual(['unhealthy Lost 2']);
    const replaced = followedBy(renamed, card({ id: 'two', identity: 'serial-b' }));
    replaced.read(50_000, gone('Lost'));
    expect(tallies(replaced)).toEqual([]);
    fail(replaced, 3);
    expect(tallies(replaced)).toEqual(['unhealthy Lost 1']);
    const returned = followedBy(replaced, card({ id: 'three' }));
    returned.read(150_000, gone('Lost'));
    expect(tallies(returned)).toEqual(['unhealthy Lost 2']);
  });
});

describe('incidents over a reboot', () => {
  const boot = async <T>(from: HealthMemory, bootId: string, use: (past: HealthMemory['past'], state?: HealthMemory) => T): Promise<T> => {
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-boots-'));
    try {
      const path = join(directory, 'health.json');
      await createStateFile({ path, bootId: 'first' }).write(from);
      const read = await createStateFile({ path, bootId }).read();
      return read.ignored === undefined ? use(undefined, read.state) : use(read.past);
    } finally {
      rmSync(directory, { recursive: true });
    }
  };
  const next = (past: HealthMemory['past'], subject: Device): OneDevice => {
    const one = new OneDevice(policy, undefined, subject);
    one.engine = createHealthEngine({ policy, ...(past === undefined ? {} : { past }) });
    return one;
  };

  it('go on for the same hardware, also under another name, and a fault that is still there counts again', async () => {
    const one = new OneDevice(policy, undefined, card({}));
    fail(one, 0);
    one.read(70, found('Dead'));
    await boot(one.engine.state(), 'second', (past) => {
      const same = next(past, card({ id: 'two' }));
      // The clock of the machine was behind before the time service set it.
      same.read(-86_400, found('Dead'));
      expect(tallies(same)).toEqual(['unhealthy Dead 2', 'unhealthy Lost 1']);
    });
  });

  it('begin anew for other hardware, and those of hardware that is not listed wait for it over kills', async () => {
    const one = new OneDevice(policy, undefined, card({}));
    fail(one, 0);
    await boot(one.engine.state(), 'second', async (past) => {
      const other = next(past, card({ identity: 'serial-b' }));
      other.read(100, gone('Lost'));
      expect(tallies(other)).toEqual([]);
      other.restart();
      other.read(110, gone('Lost'));
      await boot(other.engine.state(), 'third', (later) => {
        const returned = next(later, card({ id: 'two' }));
        returned.read(200, gone('Lost'));
        expect(tallies(returned)).toEqual(['unhealthy Lost 1']);
        expect(returned.engine.state().past, 'it belongs to the device from now on').toEqual({});
        returned.restart();
        returned.read(300, gone('Lost'));
        expect(tallies(returned), 'and is not added again').toEqual(['unhealthy Lost 1']);
      });
    });
  });

  it('of hardware that never returns are limited in number', async () => {
    const devices = Object.fromEntries(
      Array.from({ length: 400 }, (_, at) => {
        const one = new OneDevice(policy, undefined, card({ id: `${at}`, identity: `serial-${at}` }));
        fail(one, at);
        return Object.entries(one.engine.state().devices)[0] as [string, HealthMemory['devices'][string]];
      }),
    );
    const { past } = await boot({ judgedAtMs: START, devices, lastEventId: 0, events: [] }, 'second', (kept) => ({ past: kept ?? {} }));
    expect(Object.keys(past)).toHaveLength(256);
    expect(Object.keys(past)).toContain('test#serial-399');
  });
});
