import { describe, expect, it } from 'vitest';
import type { Board, BoardFamily } from '../../src/board/board.ts';
import { appearedAt, type DeviceView } from '../../src/board/device-view.ts';
import { byAttention } from '../../src/board/order.ts';
import { findingSince, findingsOf, sentenceOf, worstOf } from '../../src/board/summary.ts';
import { nodeProblem } from '../../src/health/journal/node-problem.ts';
import type { ExpectedDevices } from '../../src/model/expected.ts';
import { chartsHtml, lastReadOf, type Samples } from '../../src/server/pages/charts.ts';

const device = { key: 'toy/a', id: 'a', name: 'a', health: { state: 'healthy', conditions: [] }, holders: [], stale: false };
const kubelet = { state: 'answers', kept: 0 };
const family = (name: string, state: BoardFamily['state']): BoardFamily => ({
  family: name,
  complete: state === 'works',
  devices: 1,
  state,
});

it.each<[what: string, states: readonly BoardFamily['state'][], devices: number, kubelet: string, says: string]>([
  ['each family was read', ['works', 'works'], 2, 'answers', 'All 2 devices are healthy'],
  ['nothing was read', ['starts', 'starts'], 0, 'answers', 'The first read runs'],
  ['a family was not read yet', ['works', 'starts'], 2, 'answers', 'The first read runs; 2 devices are healthy so far'],
  ['a family cannot be read', ['works', 'fails'], 1, 'answers', 'The device is healthy, but two cannot be read'],
  [
    'neither family nor kubelet',
    ['hangs', 'works'],
    0,
    'down',
    'No device was found, but one cannot be read and the kubelet does not answer',
  ],
])('says of a node without a fault how much it knows: %s', (_what, [one, two], devices, state, says) => {
  const board = {
    devices: Array.from({ length: devices }, () => device as unknown as DeviceView),
    kubelet: { ...kubelet, state },
    families: [family('one', one ?? 'works'), family('two', two ?? 'works')],
  } satisfies Pick<Board, 'devices' | 'kubelet' | 'families'>;
  expect(sentenceOf({ ...board, node: 'node-7' })).toBe(says);
});

describe('sentence and icon of a node whose listed devices are healthy', () => {
  const whole = { kubelet, node: 'n', devices: [device, { ...device, key: 'one/b' }] as unknown as readonly DeviceView[] };
  const read = family('one', 'works');
  const counted = (expected: number, present: number): readonly ExpectedDevices[] => [{ family: 'one', expected, present }];

  it.each<[what: string, board: Partial<Board>, says: string, worst: string, exitCode: number]>([
    ['all was read', { families: [read] }, 'All 2 devices are healthy', 'healthy', 0],
    [
      'one is absent',
      { families: [read], expected: counted(3, 2) },
      'All 2 devices are healthy, but 2 of 3 expected one devices are present',
      'missing',
      1,
    ],
    [
      'one did not return',
      { families: [{ ...read, unreturned: ['gone'] }] },
      'All 2 devices are healthy, but one/gone was out of service when last seen, and was not seen since',
      'missing',
      1,
    ],
    [
      'a read reached a part of them',
      { families: [{ ...read, complete: false, lastSuccessAt: '2026-03-01T12:00:00Z' }] },
      'All 2 devices are healthy, but one cannot be read completely',
      'unknown',
      2,
    ],
    [
      'the agent stands still',
      { families: [read], fault: 'There was no new snapshot for 61 s.' },
      'The agent does not work: There was no new snapshot for 61 s',
      'unknown',
      2,
    ],
    ['none was found', { families: [read], devices: [] }, 'No device was found', 'unknown', 2],
    ['none was found, as is expected', { families: [read], devices: [], expected: counted(0, 0) }, 'No device was found', 'healthy', 0],
  ])('say what health says: %s', (_what, some, says, worst, exitCode) => {
    const board = { ...whole, ...some } as Board;
    expect([sentenceOf(board), worstOf(board), nodeProblem(board).exitCode]).toEqual([says, worst, exitCode]);
  });

  it('say first what weighs more than the fault of a device, and keep the fault', () => {
    const [first] = whole.devices;
    const lame = { ...(first as DeviceView), health: { state: 'degraded', since: '2026-03-01T12:00:00Z', conditions: [] } } as DeviceView;
    const board = { ...whole, devices: [lame], families: [read], expected: counted(2, 1) } as unknown as Board;
    expect([sentenceOf(board), worstOf(board)]).toEqual(['1 of 2 expected one devices is present. a is degraded', 'missing']);
    const lost = { ...lame, health: { ...lame.health, state: 'unhealthy' } } as DeviceView;
    const old = { ...whole, devices: [lost], families: [read], fault: 'It hangs.' } as unknown as Board;
    expect([sentenceOf(old), worstOf(old)]).toEqual(['The agent does not work: It hangs. a is unhealthy', 'unhealthy']);
  });
});

describe('with two degraded devices', () => {
  const degraded = (name: string, type: string, [fault, verdict]: readonly [string, string], pod?: string): DeviceView =>
    ({
      ...{ ...device, key: `toy/${name}`, id: name, name, family: 'toy', kind: 'toy' },
      holders: pod === undefined ? [] : [{ namespace: 'ml', pod, container: 'main' }],
      health: {
        ...{ state: 'degraded', since: verdict },
        conditions: [{ type, severity: 'degraded', reason: 'R', message: 'm', remedy: 'none', since: fault }],
      },
    }) as unknown as DeviceView;
  const idle = degraded('0', 'ThermalSlowdown', ['2026-11-23T20:00:15Z', '2026-11-23T20:00:45Z']);
  const held = degraded('7', 'UncorrectableEcc', ['2026-11-23T20:00:10Z', '2026-11-23T20:00:10Z'], 'train-0');

  it('says first what hits somebody, and sorts its row first, although the other one changed later', () => {
    expect(sentenceOf({ devices: [idle, held], node: 'n', kubelet, families: [] } as unknown as Board)).toBe(
      '7 has uncorrectable memory errors, ml/train-0 is hit',
    );
    expect([idle, held].sort(byAttention)).toEqual([held, idle]);
  });

  it('tells one begin of a fault that counts only after a while: sentence and row', () => {
    const [finding] = findingsOf({ devices: [idle], node: 'n' });
    expect(finding && findingSince(finding)).toBe('2026-11-23T20:00:15Z');
    expect(appearedAt(idle)).toBe('2026-11-23T20:00:15Z');
    const worse = { ...idle, health: { ...idle.health, since: '2026-11-23T20:00:00Z' } };
    expect(appearedAt(worse), 'the state is older than the condition that leads now').toBe('2026-11-23T20:00:00Z');
  });
});

const gauge = (metric: string, values: readonly (number | null)[], labels = {}): Samples['series'][number] => ({
  ...{ metric, labels, type: 'gauge', values },
});

it('knows when a device that is lost was read last, whatever else is still told of it', () => {
  const series = [gauge('device_temperature_celsius', [50, 51, null, null]), gauge('device_nvidia_xid_last', [null, 79, 79, 79])];
  expect(lastReadOf({ times: [1_000, 2_000, 3_000, 4_000], series })).toBe(2_000);
  expect(lastReadOf({ times: [1_000], series: [] })).toBeUndefined();
});

it.each([
  ['answers', [0, 0, 0, 0], 4_500, '0 B'],
  ['is lost', [0, 0, null, null], 4_500, 'last read 00:00:02'],
  ['is not read any more', [0, 0, 0, 0], 60_000, 'last read 00:00:04'],
] as const)(
  'has a value in the legend of a chart only while it is present, and the last known limit: a device that %s',
  (_what, values, nowMs, text) => {
    const engine = (name: string) => gauge('device_utilization_ratio', values, { engine: name });
    const times = [1_000, 2_000, 3_000, 4_000];
    const limit = gauge('device_memory_total_bytes', [null, 2 ** 36, null, null]);
    const series = [engine('gpu'), engine('memory'), engine('jpeg'), gauge('device_memory_used_bytes', values), limit];
    const { text: markup } = chartsHtml({ times, series }, nowMs, undefined);
    const [busy = '', memory = ''] = markup.split('</figure>');
    const legend = (chart: string) => [...chart.matchAll(/<i><\/i>(.*?)<b[^>]*>(.*?)<\/b>/g)].map(([, name, value]) => `${name}${value}`);
    expect(legend(busy), 'engines that did nothing are one').toEqual([`GPU ${text.replace('0 B', '0 %')}`]);
    expect(legend(memory)).toEqual([text]);
    expect([...memory.matchAll(/text-anchor="end">([^<]*B)</g)].map(([, label]) => label)).toEqual(['0 B', '20 GiB', '40 GiB', '60 GiB']);
    expect(memory).toMatch(/<text class="limit"[^>]*>64 GiB</);
    const unlimited = chartsHtml({ times, series: series.slice(3, 4) }, nowMs, undefined).text;
    expect(
      [...unlimited.matchAll(/text-anchor="end">([^<]*B)</g)].map(([, label]) => label),
      'no size is known',
    ).toEqual(['0 B']);
  },
);

it('shows the link of a port that is down beside one that is up', () => {
  const link = (port: string, up: number) => gauge('device_link_up', [up, up], { port });
  const { text } = chartsHtml({ times: [1_000, 2_000], series: [link('1', 1), link('2', 0)] }, 2_000, undefined);
  expect([...text.matchAll(/<b>Link<\/b> <span[^>]*>(.*?)<.*?<b>(.*?)<\/b>/g)].map(([, name, value]) => `${name} ${value}`)).toEqual([
    'port 1 up',
    'port 2 down',
  ]);
});
