import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHealthEngine, type HealthEngine } from '../../../src/health/engine/engine.ts';
import type { HealthMemory } from '../../../src/health/engine/memory.ts';
import { createPolicy, type PolicyInput } from '../../../src/health/policy/policy.ts';
import { type KmsgReader, openKmsg } from '../../../src/host/kernel-log/reader.ts';
import type { Device } from '../../../src/model/device.ts';
import { minutes, seconds } from '../../../src/model/duration.ts';
import { BEFORE_CAUSE_MS, CHANNELS_REMOVED } from '../../../src/probes/nvidia/channel-removals.ts';
import { logConditions, xidReports } from '../../../src/probes/nvidia/log-findings.ts';
import { parseNvidiaLine } from '../../../src/probes/nvidia/xid-line.ts';
import { EMPTY_MEMORY, endFaults, rememberLine, type XidMemory } from '../../../src/probes/nvidia/xid-memory.ts';
import { XID_TABLE } from '../../../src/probes/nvidia/xid-table.ts';
import { readAt } from '../../health/one-device.ts';

const BOOT_MS = Date.parse('2026-01-01T00:00:00Z');
const devices: readonly Device[] = [0, 1].map((index) => ({
  family: 'nvidia',
  id: `GPU-${index}`,
  kind: 'gpu',
  aliases: [],
  pciAddress: `0000:0${index}:00.0`,
}));

/** The part of an agent from the kernel log file to the verdict. Time advances only by `pass`. */
class Agent {
  memory: XidMemory = EMPTY_MEMORY;
  readonly engine: HealthEngine;
  readonly #reader: KmsgReader;
  readonly #time: { nowMs: number };

  constructor(path: string, time: { nowMs: number }, config: PolicyInput['config'] = {}, state?: HealthMemory) {
    this.#time = time;
    const { policy } = createPolicy({ specs: { nvidia: Object.values(logConditions) }, config });
    this.engine = createHealthEngine({ policy, ...(state === undefined ? {} : { state }) });
    const clock = { now: () => time.nowMs, monotonic: () => time.nowMs, after: () => () => {} };
    this.#reader = openKmsg({
      path,
      clock,
      bootTimeMs: BOOT_MS,
      onRecord: (message) => {
        const line = parseNvidiaLine(message);
        if (line !== undefined) this.memory = rememberLine(this.memory, line, message);
      },
    });
  }

  states(): readonly string[] {
    this.#reader.poll();
    const { nowMs } = this.#time;
    const reports = xidReports(this.memory, devices, nowMs, true);
    const judged = devices.map((device) => ({
      ...readAt(device, nowMs),
      outOfBand: { findings: reports.get(device.id)?.findings ?? [], readAtMs: nowMs },
    }));
    const { verdicts } = this.engine.judge({ devices: judged, monotonicMs: nowMs }, nowMs);
    this.engine.announce();
    return [...verdicts.values()].map(({ state, conditions }) =>
      [state, ...conditions.map(({ type, instance }) => `${type}/${instance}`)].join(' '),
    );
  }

  close(): void {
    this.#reader.close();
  }
}

let directory: string;
let path: string;
let time: { nowMs: number };
let agents: Agent[];
let seq: number;

const start = (config?: PolicyInput['config'], state?: HealthMemory): Agent => {
  const agent = new Agent(path, time, config, state);
  agents.push(agent);
  return agent;
};
const pass = (ms: number): void => {
  time.nowMs += ms;
};
/** Reads repeatedly while time advances, because the policy ignores time without reads. */
const watch = (agent: Agent, ms: number): readonly string[] => {
  let states = agent.states();
  for (let left = ms; left > 0; left -= seconds(30)) {
    pass(Math.min(left, seconds(30)));
    states = agent.states();
  }
  return states;
};
/** Reads a line at its arrival, and again when no later line can explain it. */
const settled = (agent: Agent): readonly string[] => {
  agent.states();
  pass(BEFORE_CAUSE_MS);
  return agent.states();
};
const logged = (text: string): string => `3,${seq++},${(time.nowMs - BOOT_MS) * 1_000},-;NVRM: Xid (PCI:0000:01:00): ${text}\n`;
const log = (text: string): void => appendFileSync(path, logged(text));

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-xid-'));
  path = join(directory, 'kmsg');
  time = { nowMs: BOOT_MS + minutes(10) };
  agents = [];
  seq = 1;
  writeFileSync(path, '6,0,0,-;Linux version 6.8.0\n');
});

afterEach(() => {
  for (const agent of agents) agent.close();
  rmSync(directory, { recursive: true, force: true });
});

const STATES = { info: 'healthy', degraded: 'degraded', fatal: 'unhealthy' } as const;
const rows = XID_TABLE.flatMap((row) => row.xids.map((xid) => ({ xid, row })));

describe('the verdict on a GPU', () => {
  it.each(rows)('follows Xid $xid from the line in the log to its end', ({ xid, row }) => {
    const isLink = xid >= 144 && xid <= 150;
    const text = isLink ? `${xid}, UNIT Fatal XC0 i0 Link 08 (0x004505c6)` : `${xid}, pid=1, name=a, text`;
    const type = row.lasts === 'quiet' ? 'XidPassing' : 'Xid';
    const held = ['healthy', `${STATES[row.severity]} ${type}/${xid}`];
    const agent = start();
    expect(agent.states()).toEqual(['healthy', 'healthy']);
    log(text);
    // Removed channels are reported when no other error can explain them any more.
    expect(xid === CHANNELS_REMOVED ? settled(agent) : agent.states()).toEqual(held);
    expect(watch(agent, minutes(5))).toEqual(held);
    if (row.lasts === 'quiet') {
      expect(watch(agent, minutes(7))).toEqual(['healthy', 'healthy']);
      return;
    }
    expect(watch(agent, minutes(60))).toEqual(held);
    agent.memory = endFaults(agent.memory, '0000:01:00.0', 'reset', time.nowMs);
    expect(agent.states()).toEqual(row.lasts === 'boot' ? held : ['healthy', 'healthy']);
    log('154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)');
    expect(agent.states()).toEqual(['healthy', 'healthy']);
  });

  it('is the same after a restart of the agent, which sends no event twice', () => {
    const first = start();
    first.states();
    log('79, GPU has fallen off the bus.');
    log('13, pid=1, name=a, Graphics Exception');
    expect(first.states()).toEqual(['healthy', 'unhealthy Xid/79 XidPassing/13']);
    const told = first.engine.eventsSince(0).length;
    expect(told).toBeGreaterThan(0);
    pass(seconds(5));
    const second = start({}, first.engine.state());
    expect(second.states()).toEqual(['healthy', 'unhealthy Xid/79 XidPassing/13']);
    expect(second.engine.eventsSince(0)).toHaveLength(told);
  });

  it('keeps a fault that the log has lost before a restart, until the driver reports its end', () => {
    const first = start();
    log('79, GPU has fallen off the bus.');
    first.states();
    writeFileSync(path, '6,90000,900000000,-;something else\n');
    seq = 90_001;
    pass(seconds(5));
    const second = start({}, first.engine.state());
    expect(second.states()).toEqual(['healthy', 'unhealthy Xid/79']);
    expect(watch(second, minutes(60))).toEqual(['healthy', 'unhealthy Xid/79']);
    log('154, GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)');
    expect(second.states()).toEqual(['healthy', 'healthy']);
  });

  it('is not changed by a fault of this boot that ended before the agent began', () => {
    log('48, DBE');
    log('154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)');
    log('154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)');
    pass(minutes(5));
    expect(start().states()).toEqual(['healthy', 'healthy']);
  });

  it('is the same when the file is rewritten with the same lines', () => {
    const agent = start();
    const lines = `6,0,0,-;Linux version 6.8.0\n${logged('48, DBE')}`;
    writeFileSync(path, lines);
    expect(agent.states()).toEqual(['healthy', 'unhealthy Xid/48']);
    const more = `${lines}${logged('154, GPU recovery action changed from 0x1 (x) to 0x0 (None)')}`;
    writeFileSync(path, more);
    expect(agent.states()).toEqual(['healthy', 'healthy']);
    writeFileSync(path, `${more}${logged('13, x')}`);
    expect(agent.states()).toEqual(['healthy', 'healthy XidPassing/13']);
  });

  it('follows the configuration of single numbers', () => {
    const agent = start({
      conditions: {
        'nvidia.Xid/63': { severity: 'fatal' },
        'nvidia.XidPassing/31': { severity: 'fatal' },
        'nvidia.Xid/74': { severity: 'info' },
      },
    });
    log('63, Row Remapper: New row marked for remapping');
    expect(agent.states()).toEqual(['healthy', 'unhealthy Xid/63']);
    log('154, GPU recovery action changed from 0x1 (x) to 0x0 (None)');
    log('31, MMU Fault');
    expect(agent.states()).toEqual(['healthy', 'unhealthy XidPassing/31']);
    expect(watch(agent, minutes(12))).toEqual(['healthy', 'healthy']);
    log('74, NVLink: fatal error');
    expect(agent.states()).toEqual(['healthy', 'healthy Xid/74']);
  });
});

describe('Xid 45, the removal of channels', () => {
  const removed = (pid: number, channel = 1): string => `45, pid=${pid}, name=train, Ch ${channel.toString(16).padStart(8, '0')}`;
  const EXPLAINED = {
    'after an error of the same program': ['31, pid=7, name=train, MMU Fault', removed(7)],
    'before an error of the same program': [removed(7), '31, pid=7, name=train, MMU Fault'],
    'after an error of an unknown program': ["31, pid='<unknown>', name=<unknown>, MMU Fault", removed(7)],
    'after an error of the GPU, of any program': ['48, pid=7, name=train, DBE', removed(8), removed(9)],
    'before an error of the GPU': [removed(7), removed(8), '79, GPU has fallen off the bus.'],
    'between two errors': ['13, pid=7, name=train, Graphics Exception', removed(7), '43, pid=7, name=train, Ch 00000001'],
    'that names its cause': [`${removed(7)} caused by previous Xid 13`],
  };
  const others = (states: readonly string[]): readonly string[] => states.filter((state) => state.includes('/45'));

  it.each(Object.entries(EXPLAINED))('%s is not reported', (_, texts) => {
    const agent = start();
    agent.states();
    for (const text of texts) {
      log(text);
      agent.states();
      pass(seconds(2));
    }
    for (let turn = 0; turn < 20; turn += 1) {
      pass(seconds(5));
      expect(others(agent.states())).toEqual([]);
    }
    // The metric still counts it.
    const readings = xidReports(agent.memory, devices, time.nowMs, true).get('GPU-1')?.readings ?? [];
    expect(readings.some(({ labels }) => labels?.xid === '45')).toBe(true);
  });

  it.each<[string, readonly string[]]>([
    ['with an error of another program', ['31, pid=6, name=other, MMU Fault', removed(7)]],
    ['with a message that is no error', ['14, test', removed(7)]],
    ['again and again', [removed(7), removed(8), removed(7)]],
  ])('%s is reported', (_, texts) => {
    const agent = start();
    for (const text of texts) log(text);
    expect(others(settled(agent))).toHaveLength(1);
  });

  it.each([
    ['a minute after an error', '48, DBE', seconds(61), removed(7)],
    ['more than seconds before an error', removed(7), seconds(6), '48, DBE'],
  ])('%s is reported', (_, first, gapMs, second) => {
    const agent = start();
    log(first);
    agent.states();
    pass(gapMs);
    log(second);
    expect(others(settled(agent))).toHaveLength(1);
  });

  it('is reported while an error of another GPU is not its cause', () => {
    const agent = start();
    appendFileSync(path, logged('48, DBE').replace('0000:01:00', '0000:00:00'));
    log(removed(7));
    expect(settled(agent)).toEqual(['unhealthy Xid/48', 'healthy XidPassing/45']);
  });

  it.each([
    ['with a cause', ['119, Timeout waiting for RPC from GSP'], 'unhealthy Xid/119'],
    ['without a cause', [], 'healthy XidPassing/45'],
  ])('in 672 lines %s gives one verdict', (_, causes, verdict) => {
    const agent = start();
    agent.states();
    for (const cause of causes) log(cause);
    for (let line = 0; line < 672; line += 1) {
      log(removed(line % 90, line));
      pass(50);
    }
    expect(settled(agent)).toEqual(['healthy', verdict]);
    expect(agent.engine.eventsSince(0).filter(({ transition }) => transition === 'raised')).toHaveLength(1);
    expect(agent.memory.gpus.get('0000:01:00')?.removals.alone.length).toBeLessThanOrEqual(64);
  });

  it('is reported while a storm of it goes on', () => {
    const agent = start();
    agent.states();
    for (let second = 0; second < 180; second += 1) {
      for (let line = 0; line < 20; line += 1) log(removed(line, second));
      pass(seconds(1));
      const states = agent.states();
      if (second > 6) expect(states).toEqual(['healthy', 'healthy XidPassing/45']);
    }
  });

  it.each([
    ['error first', '48, DBE', removed(7)],
    ['removal first', removed(7), '48, DBE'],
  ])('is explained although the agent restarts between the lines: %s', (_, first, second) => {
    const before = start();
    log(first);
    before.states();
    pass(seconds(2));
    const after = start({}, before.engine.state());
    after.states();
    log(second);
    expect(settled(after)).toEqual(['healthy', 'unhealthy Xid/48']);
    expect(others(watch(after, minutes(2)))).toEqual([]);
  });

  it('is explained although the wall clock is set between the lines and the agent restarts', () => {
    const before = start();
    log('48, DBE');
    before.states();
    const second = logged(removed(7));
    time.nowMs += minutes(30);
    const after = start({}, before.engine.state());
    after.states();
    appendFileSync(path, second);
    expect(settled(after)).toEqual(['healthy', 'unhealthy Xid/48']);
  });
});
