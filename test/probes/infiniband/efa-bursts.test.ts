import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { createHealthEngine, type HealthEngine } from '../../../src/health/engine/engine.ts';
import { createPolicy } from '../../../src/health/policy/policy.ts';
import { minutes, seconds } from '../../../src/model/duration.ts';
import { family } from '../../../src/probes/infiniband/index.ts';
import { readAt } from '../../health/one-device.ts';
import { machineKeeper, type Probed, probeCase, reportOf } from './harness.ts';

const DEVICE = 'rdmap0s29';
const FILES = `sys/devices/pci0000:00/0000:00:1d.0/infiniband/${DEVICE}/ports/1/hw_counters`;
const STEP_MS = seconds(15);

/** File, condition with its instance, growth that the condition allows, and the window of that growth. */
const RULES: readonly (readonly [file: string, condition: string, growth: number, windowMs: number])[] = [
  ['rx_drops', 'ReceiveDrops/1', 100, minutes(1)],
  ['rdma_read_wr_err', 'WorkRequestErrors/1/read', 100, minutes(1)],
  ['rdma_write_wr_err', 'WorkRequestErrors/1/write', 100, minutes(1)],
  ['unresponsive_remote_events', 'RemoteUnresponsive/1/unresponsive', 100, minutes(1)],
  ['impaired_remote_conn_events', 'RemoteUnresponsive/1/impaired', 100, minutes(1)],
  ['retrans_timeout_events', 'RetransmissionTimeouts/1', 100, minutes(1)],
  ['retrans_pkts', 'Retransmissions/1', 1_000, minutes(10)],
  ['retrans_bytes', 'RetransmittedBytes/1', 1_000_000, minutes(10)],
];

const keep = machineKeeper();
let machine: Probed;
let engine: HealthEngine;
let counts: Map<string, number>;

beforeEach(() => {
  machine = keep(probeCase('efa-traffic-in-hw-counters'));
  engine = createHealthEngine({ policy: createPolicy({ specs: { infiniband: family.conditions }, config: {} }).policy });
  counts = new Map();
});

function grow(file: string, by: number): void {
  const count = (counts.get(file) ?? 1_000) + by;
  counts.set(file, count);
  writeFileSync(join(machine.root, FILES, file), String(count));
}

/** Reads once and returns the state with its conditions. */
function read(): string {
  machine.clock.nowMs += STEP_MS;
  const { device, findings } = reportOf(machine.collect(), DEVICE);
  const { nowMs } = machine.clock;
  const { verdicts } = engine.judge(
    { devices: [{ ...readAt(device, nowMs), read: { findings, readAtMs: nowMs } }], monotonicMs: nowMs },
    nowMs,
  );
  return [...verdicts.values()]
    .map(({ state, conditions }) => [state, ...conditions.map(({ type, instance }) => `${type}/${instance}`)].join(' '))
    .join();
}

function readFor(ms: number, before: () => void = () => {}): readonly string[] {
  const states = new Set<string>();
  for (let passed = 0; passed < ms; passed += STEP_MS) {
    before();
    states.add(read());
  }
  return [...states];
}

describe('a counter of an Elastic Fabric Adapter', () => {
  it.each(RULES)('%s: a burst is told, and forgotten after a quiet time', (file, condition, growth, windowMs) => {
    grow(file, 0);
    expect(read()).toBe('healthy');
    grow(file, growth + 1);
    expect(read()).toBe(`healthy ${condition}`);
    readFor(windowMs + minutes(11));
    expect(read()).toBe('healthy');
  });

  it.each(RULES)('%s: a growth that the rule allows is not told', (file, _condition, growth, windowMs) => {
    grow(file, 0);
    expect(read()).toBe('healthy');
    const step = Math.floor((growth * STEP_MS) / windowMs);
    expect(readFor(3 * windowMs, () => grow(file, step))).toEqual(['healthy']);
  });

  it.each(RULES)('%s: a value from before the first read, or after a reset, is no growth', (file, _condition, growth) => {
    grow(file, 100 * growth);
    expect(read()).toBe('healthy');
    grow(file, -(counts.get(file) ?? 0));
    expect(readFor(minutes(2))).toEqual(['healthy']);
  });

  it('moves no other condition than its own', () => {
    for (const [file] of RULES) grow(file, 0);
    read();
    for (const [file, , growth] of RULES) grow(file, growth + 1);
    expect(read().split(' ').sort()).toEqual(['healthy', ...RULES.map(([, condition]) => condition)].sort());
  });
});
