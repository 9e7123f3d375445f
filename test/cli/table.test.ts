import { describe, expect, it } from 'vitest';
import { boardOf } from '../../src/board/board.ts';
import { boardText, type TextForm } from '../../src/cli/top/board-text.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { Reading } from '../../src/model/metric.ts';
import { Readings } from '../../src/model/readings.ts';
import type { DeviceState, Snapshot } from '../../src/model/snapshot.ts';
import { fixedBoard } from './top/fixed-board.ts';

const allocation = (pod: string, deviceId = 'x', resource = 'nvidia.com/gpu'): Allocation => ({
  namespace: 'ml',
  pod,
  container: 'main',
  resource,
  deviceId,
  numaNodes: [],
});

const device = (id: string, readings: Reading[] = [], more: Partial<DeviceState> = {}): DeviceState => ({
  key: `nvidia/${id}`,
  device: { family: 'nvidia', id, kind: 'gpu', aliases: [], model: 'H200' },
  readings: Readings.of(readings),
  processes: [],
  verdict: { state: 'healthy', sinceMs: 0, conditions: [] },
  holders: [],
  readAtMs: 0,
  stale: false,
  ...more,
});

const snapshot = (devices: DeviceState[], allocations: Snapshot['allocations'] = []): Snapshot => ({
  sequence: 1,
  takenAtMs: 0,
  devices,
  allocations,
  containerReadings: [],
  families: [],
  podResources: { allocations: [], held: new Set(), exclusive: [], podExclusive: [], answeredAtMs: 0 },
});

const text = (given: Snapshot, form: Partial<TextForm> = {}): string =>
  boardText(boardOf(given, { nowMs: 0 }), { isWide: false, group: 'tree', ...form });

/** The cells of the first device's row. */
const row = (state: DeviceState): string[] =>
  text(snapshot([state]))
    .split('\n')[1]
    ?.split(/ {2,}/) ?? [];

const GIB = 2 ** 30;

const PORT_DOWN = {
  type: 'PortDown',
  instance: '1',
  class: 'latched',
  severity: 'fatal',
  reason: 'X',
  message: 'no link',
  remedy: 'check-cable',
  sinceMs: 0,
} as const;
const SLOW = { ...PORT_DOWN, type: 'RateDegraded', severity: 'degraded' } as const;
const WAITS = { ...PORT_DOWN, countsAtMs: 30_000 };
const QUIET = { sinceMs: 5, untilMs: 60_000 };

describe('the table of devices', () => {
  it('shows what a busy GPU does and who holds it, as the page does', () => {
    const readings: Reading[] = [
      { metric: 'device_utilization_ratio', labels: { engine: 'memory' }, value: 0.99 },
      { metric: 'device_utilization_ratio', labels: { engine: 'gpu' }, value: 0.934 },
      { metric: 'device_memory_used_bytes', value: 118n * BigInt(GIB) },
      { metric: 'device_memory_total_bytes', value: 141 * GIB },
      { metric: 'device_power_watts', labels: { sensor: 'board' }, value: 640.2 },
      { metric: 'device_power_limit_watts', labels: { limit: 'enforced' }, value: 700 },
    ];
    const state = device('gpu-0', readings, { holders: [allocation('train-0')] });
    expect(row(state)).toEqual([
      'Healthy',
      'gpu-0',
      'ml/train-0/main',
      'Busy 93.4 %',
      'Memory 118 GiB of 141 GiB',
      'Power 640 W of 700 W',
      'H200',
    ]);
    expect(text(snapshot([state]))).toMatch(/^STATE +DEVICE +HELD BY +READINGS +MODEL\n/);
  });

  it('leaves out columns that nothing fills, and shows zero as zero', () => {
    expect(row(device('gpu-0'))).toEqual(['Healthy', 'gpu-0', 'free', 'H200']);
    expect(row(device('gpu-0', [{ metric: 'device_utilization_ratio', labels: { engine: 'gpu' }, value: 0 }]))[3]).toBe('Busy 0 %');
  });

  it('counts further holders, each container once; the wide one names all', () => {
    const state = device('gpu-0', [], { holders: [allocation('a', '0'), allocation('a', '1'), allocation('b'), allocation('c')] });
    expect(row(state)[2]).toBe('ml/a/main +2');
    expect(text(snapshot([state]), { isWide: true })).toContain(' ml/a/main ml/b/main ml/c/main ');
  });

  it.each<[string, Partial<DeviceState>, string, string]>([
    [
      'a fault',
      { verdict: { state: 'unhealthy', sinceMs: 0, conditions: [PORT_DOWN] } },
      'Unhealthy',
      'PortDown (1): no link · Check cable, transceiver and the remote port.',
    ],
    ['its absence', { missingSinceMs: 5, verdict: { state: 'unhealthy', sinceMs: 5, conditions: [] } }, 'Missing', ''],
    ['old readings', { stale: true, verdict: { state: 'unknown', sinceMs: 0, conditions: [] } }, 'Unknown', 'last read too old'],
    [
      'what waits to count, and how many others',
      { verdict: { state: 'healthy', sinceMs: 0, conditions: [], pending: [{ ...WAITS, unverifiedSinceMs: 5 }, WAITS, WAITS] } },
      'Pending',
      'PortDown (1) pending, unverified +2: no link · Check cable, transceiver and the remote port.',
    ],
    [
      'what counts before what waits to',
      { verdict: { state: 'degraded', sinceMs: 0, conditions: [SLOW], pending: [WAITS] } },
      'Degraded',
      'RateDegraded (1) +1: no link · Check cable, transceiver and the remote port.',
    ],
    [
      'what waits to be withdrawn',
      { verdict: { state: 'unhealthy', sinceMs: 0, conditions: [{ ...PORT_DOWN, recovering: QUIET }] } },
      'Recovering',
      "PortDown (1) recovering: it was 'no link'",
    ],
    [
      'what was never checked',
      { verdict: { state: 'healthy', sinceMs: 0, conditions: [], unchecked: ['Xid'] } },
      'Healthy',
      'not checked: Xid',
    ],
    ['no reason', { verdict: { state: 'unknown', sinceMs: 0, conditions: [] } }, 'Unknown', ''],
  ])('names %s', (_name, more, word, cell) => {
    const cells = row(device('gpu-0', [], more));
    expect(cells[0]).toBe(word);
    expect(cells.includes(cell === '' ? 'H200' : cell), cells.join('|')).toBe(true);
  });

  it('lists problems and allocations without a device below, and one section for each pod', () => {
    const lost = { allocation: allocation('lost', 'GPU-9'), devices: [], unresolved: 'no-device', held: false } as const;
    expect(text(snapshot([device('gpu-0')], [lost]))).toMatch(
      /\nHeld, but no device is known\nml\/lost\/main holds nvidia.com\/gpu GPU-9: No probe/,
    );
    expect(text(snapshot([device('a', [], { holders: [allocation('train-0')] }), device('b')]), { group: 'pod' })).toMatch(
      /^STATE .*\nml\/train-0\nHealthy +a .*\nFree\nHealthy +b /,
    );
    expect(text(snapshot([]))).toMatch(/^There is no device\. "device-agent doctor" .*\n$/);
  });

  it('is never wider than the terminal; in a pipe and in the wide form nothing is cut, and an id follows a short name', () => {
    const board = fixedBoard();
    for (let columns = 24; columns < 160; columns += 1)
      for (const line of boardText(board, { isWide: false, group: 'tree', columns })
        .split('\n')
        .slice(0, board.devices.length + 1))
        expect([...line].length, `${columns}: ${line}`).toBeLessThanOrEqual(columns);
    for (const form of [{ isWide: false }, { isWide: true, columns: 40 }]) {
      const all = boardText(board, { group: 'tree', ...form });
      expect(all).not.toContain('…');
      expect(all).toContain('GPU-5e1f0000-0000-4000-8000-000000000000');
      expect(all).toContain('Port 1 is down; its physical state is Polling.');
    }
  });

  it('lets no text from outside break a line or steer the terminal', () => {
    const hostile = device('gpu-0', [], { holders: [{ ...allocation('a'), pod: 'b\nc\u001b[2J' }] });
    expect(text(snapshot([hostile]))).toContain('ml/b\\u000ac\\u001b[2J/main');
  });
});
