import { describe, expect, it } from 'vitest';
import { type Board, boardOf } from '../../src/board/board.ts';
import type { DeviceView, DisplayReading } from '../../src/board/device-view.ts';
import { mapHtml } from '../../src/board/map-html.ts';
import { stateCounts } from '../../src/board/order.ts';
import { chipsHtml, sayHtml, tableRows } from '../../src/board/overview-html.ts';
import { rowHtml } from '../../src/board/row-html.ts';
import { sparkline } from '../../src/board/spark.ts';
import { conditionTexts, stateCell, whyLines } from '../../src/board/state-html.ts';
import { findingsOf, sentenceOf } from '../../src/board/summary.ts';
import { DEFAULT_VIEW, viewOf } from '../../src/board/view.ts';
import { useText } from '../../src/cli/top/columns.ts';
import { sparkText } from '../../src/cli/top/spark-text.ts';
import type { ActiveCondition } from '../../src/model/health.ts';
import type { Reading } from '../../src/model/metric.ts';
import { Readings } from '../../src/model/readings.ts';
import type { PageReading } from '../../src/model/shared-metrics.ts';
import type { DeviceState, Snapshot } from '../../src/model/snapshot.ts';
import { snapshot as sample, state, TAKEN_AT_MS } from '../metrics/sample.ts';
import { allocation, device, podResources } from '../support/snapshots.ts';

const of = (devices: readonly DeviceState[], part: Partial<Snapshot> = {}): Board =>
  boardOf(
    { ...sample, allocations: [], families: [], podResources: podResources([], { answeredAtMs: TAKEN_AT_MS }), devices, ...part },
    { nowMs: TAKEN_AT_MS },
  );
const gpu = (id: string, more: Partial<DeviceState> = {}, parent?: string): DeviceState =>
  state(device({ id, kind: parent === undefined ? 'gpu' : 'mig', ...(parent === undefined ? {} : { parent }) }), more);
const held = { holders: [allocation({ deviceId: 'x' })] };
const sick = { verdict: { state: 'unhealthy', sinceMs: 1, conditions: [] } } as const;

const reset: ActiveCondition = {
  ...{ type: 'Lost', class: 'latched', severity: 'fatal', reason: 'Lost', message: 'it is lost', remedy: 'reset', sinceMs: 1 },
};

const told = (lines: readonly { readonly text: string }[]): string => lines.map(({ text }) => text).join('\n');

describe('the use of a device', () => {
  it('is "held by parts" where containers hold parts of it, and names parts and holders', () => {
    const { devices: rows, counts } = of([gpu('a'), gpu('a-0', held, 'a'), gpu('a-1', {}, 'a'), gpu('b', held), gpu('c')]);
    expect(rows.map(({ id, use }) => [id, use])).toEqual([
      ['a', 'held by parts'],
      ['a-0', 'held'],
      ['a-1', 'free'],
      ['b', 'held'],
      ['c', 'free'],
    ]);
    expect(rows[0]?.holders).toEqual([
      { namespace: 'ml', pod: 'train-0', container: 'main', resource: 'example.com/toy', deviceId: 'x', part: 'a-0' },
    ]);
    expect(counts).toMatchObject({ devices: 5, held: 2, heldByParts: 1 });
  });

  it('is "no holder", and never "free", of a device that nobody can use, with those that held it last', () => {
    const lastHolders = { pods: [{ namespace: 'ml', pod: 'llm-1-3' }], endedAtMs: 1 };
    const unhealthy = { state: 'unhealthy', sinceMs: 1, conditions: [reset] } as const;
    const { devices: rows } = of([
      gpu('a', { lastHolders }),
      gpu('b', { lastHolders, verdict: unhealthy }),
      gpu('c', { missingSinceMs: 1 }),
    ]);
    expect(Object.fromEntries(rows.map(({ id, use, lastHolders: last }) => [id, [use, last]]))).toEqual({
      a: ['free', undefined],
      b: ['no holder', ['ml/llm-1-3']],
      c: ['no holder', undefined],
    });
    const [lost] = rows.filter(({ id }) => id === 'b');
    expect(useText(lost as DeviceView, true)).toBe('no holder; last: ml/llm-1-3');
    expect(rowHtml({ row: lost as DeviceView, depth: 0 }, undefined, 0).text).toContain(
      'title="no holder; last: ml/llm-1-3">no holder; last: llm-1-3<',
    );
  });

  it('is unknown, and never "free", while the kubelet does not answer', () => {
    const problem = { reason: 'refused', message: 'refused' } as const;
    const [before, during] = [{}, { answeredAtMs: TAKEN_AT_MS, problem }].map((part) => {
      const { answeredAtMs: _never, ...none } = podResources([]);
      return of([gpu('a'), gpu('b', held)], { podResources: { ...none, ...part } }).devices.map(({ use }) => use);
    });
    expect(before).toEqual(['unknown', 'held']);
    expect(during).toEqual(['unknown', 'held']);
  });

  it('is unknown for a device that may be the one of an ambiguous id, also by a part of it, and for no other', () => {
    const ambiguous = { allocation: allocation({ deviceId: 'x' }), devices: [], unresolved: 'ambiguous', held: false } as const;
    const devices = [gpu('a'), gpu('a-0', {}, 'a'), gpu('b'), gpu('c', held)];
    const used = (candidates: readonly string[]) =>
      of(devices, { allocations: [{ ...ambiguous, candidates }] }).devices.map(({ id, use }) => `${id} ${use}`);
    expect(used(['toy/a-0', 'toy/c'])).toEqual(['a unknown', 'a-0 unknown', 'b free', 'c held']);
    expect(used(['toy/b'])).toEqual(['a free', 'a-0 free', 'b unknown', 'c held']);
  });

  it('is counted as what is known while the kubelet does not answer, and draining is not said to end nobody', () => {
    const podless = { ...podResources([]), answeredAtMs: TAKEN_AT_MS, problem: { reason: 'refused', message: 'refused' } as const };
    const lost = { ...sick, verdict: { ...sick.verdict, conditions: [reset] } };
    const [answered, silent] = [{}, { podResources: podless }].map((part) => of([gpu('a', lost), gpu('b')], part));
    const texts = (board: Board): string => mapHtml(board).text + sayHtml({ ...board, node: 'node-1' }).text;
    expect(texts(answered as Board)).toContain('>0 of 2 held<');
    expect(texts(answered as Board)).not.toContain('not known (kubelet');
    expect(texts(silent as Board)).toContain('>0 of 2 known to be held<');
    expect(texts(silent as Board)).toContain('which other pods draining ends is not known (kubelet: refused)');
  });

  it('ends where devices contain each other', () => {
    const { devices: rows } = of([gpu('a', {}, 'b'), gpu('b', held, 'a')]);
    expect(rows.map(({ id, use }) => [id, use])).toEqual(
      [
        ['b', 'held'],
        ['a', 'held by parts'],
      ].toSorted((a, b) => ((a[0] as string) < (b[0] as string) ? -1 : 1)),
    );
  });
});

describe('the order of rows', () => {
  it('has sick devices first, and parts under their whole, which a sick part lifts', () => {
    const { devices: rows } = of([gpu('b10'), gpu('b2'), gpu('a', {}), gpu('z'), gpu('z-1', sick, 'z'), gpu('z-0', {}, 'z')]);
    expect(rows.map(({ id }) => id)).toEqual(['z', 'z-1', 'z-0', 'a', 'b2', 'b10']);
  });
});

describe('the name of a device', () => {
  it('is the index of the vendor where the id is only for programs', () => {
    const uuid = 'GPU-5e1f0000-0000-4000-8000-000000000001';
    const named = (part: object) => of([state(device({ id: uuid, kind: 'gpu', ...part }))]).devices[0]?.name;
    expect(named({ uuid, index: '3' })).toBe('GPU 3');
    expect(named({ uuid })).toBe('GPU-5e1f0000…');
    expect(named({})).toBe(uuid);
    expect(named({ aliases: ['0008:01:00.0', 'accel0'] }), 'the name in the kernel').toBe('accel0');
  });
});

describe('the other name of a device', () => {
  const also = (part: object) => of([state(device({ id: '0030:20:00.0', kind: 'pf', ...part }))]).devices[0]?.also;
  it('is its interface or its name in the kernel, and never its PCI address', () => {
    expect(also({ netdevs: ['ens1f0'], aliases: ['uverbs0'] })).toBe('ens1f0');
    expect(also({ aliases: ['nvme0'] })).toBe('nvme0');
    expect(also({ aliases: ['0000:10:00.0', 'uverbs0'] })).toBeUndefined();
    expect(also({ id: 'eui.36524e5a000000000025384500000001', aliases: ['nvme0n1'] }), 'it is the name already').toBeUndefined();
  });
});

describe('a condition of a part', () => {
  const down = (message: string): ActiveCondition => ({
    type: 'PortDown',
    instance: '1',
    class: 'self-clearing',
    severity: 'fatal',
    reason: 'LinkDown',
    message,
    remedy: 'check-cable',
    sinceMs: 1,
  });
  const port = (id: string, message: string, parent?: string) =>
    state(device({ id, kind: 'pf', ...(parent && { parent }) }), {
      verdict: { state: 'unhealthy', sinceMs: 1, conditions: [down(message)] },
    });

  it('refers to the whole that has the same one, so that what to do stands once', () => {
    const { devices: rows } = of([port('pf0', 'no link'), port('vf0', 'no link at pf0', 'pf0'), port('pf1', 'no link')]);
    expect(rows.map(({ id, health }) => [id, health.conditions[0]?.ofWhole])).toEqual([
      ['pf0', undefined],
      ['vf0', 'pf0'],
      ['pf1', undefined],
    ]);
    expect(stateCell(rows[1] as DeviceView, 0).text).toContain('as pf0');
    expect(whyLines(rows[1] as DeviceView, 0)).toEqual([]);
    expect(told(conditionTexts(rows[1] as DeviceView, 0)), 'its own page tells all').toContain('no link at pf0');
  });

  it('is no fault of its own while the part also has a condition for information', () => {
    const idle = { ...down('held, and does nothing'), type: 'IdleHeld', severity: 'info', remedy: 'none' } as const;
    const part = state(device({ id: 'vf0', kind: 'vf', parent: 'pf0' }), {
      verdict: { state: 'unhealthy', sinceMs: 1, conditions: [down('no link at pf0')], pending: [{ ...idle, countsAtMs: 9 }] },
    });
    const board = of([port('pf0', 'no link'), part]);
    expect(board.devices[1]?.health.pending?.map(({ type }) => type)).toEqual(['IdleHeld']);
    expect(findingsOf(board).map(({ devices }) => devices.map(({ id }) => id))).toEqual([['pf0']]);
    expect(stateCell(board.devices[1] as DeviceView, 0).text).toContain('as pf0');
  });

  it('that ended asks for nothing, unless another fault of the device lasts', () => {
    const passed = { ...down('port 2 was down'), instance: '2', recovering: { sinceMs: 1, untilMs: 9 } };
    const sentences = (...conditions: readonly ActiveCondition[]) =>
      told(conditionTexts(of([gpu('a', { verdict: { state: 'unhealthy', sinceMs: 1, conditions } })]).devices[0] as DeviceView, 0));
    expect(sentences(passed)).toContain('No action is needed.');
    expect(sentences(down('no link'), passed)).not.toContain('No action is needed.');
  });
});

describe('conditions that differ in their instance only', () => {
  const errors = (link: number, more: Partial<ActiveCondition> = {}): ActiveCondition => ({
    ...{ type: 'NvLinkErrors', instance: String(link), class: 'self-clearing', severity: 'degraded', reason: 'Errors' },
    ...{ message: `errors on link ${link}`, remedy: 'inspect', sinceMs: 1, ...more },
  });
  const rowOf = (conditions: readonly ActiveCondition[]): DeviceView =>
    of([gpu('a', { verdict: { state: 'degraded', sinceMs: 1, conditions } })]).devices[0] as DeviceView;
  const links = Array.from({ length: 18 }, (_, link) => errors(link));

  it('are one in a table, which names the others and hides no other kind', () => {
    const row = rowOf([...links, errors(18, { severity: 'fatal', message: 'link 18 is dead' })]);
    const lines = whyLines(row, 0);
    const text = told(lines);
    expect(lines).toHaveLength(2);
    expect(text).toContain('errors on link 0');
    expect(text).toMatch(/the same: NvLinkErrors \(1\), (?:NvLinkErrors \(\d\)(?:, )?){7} and 9 more/);
    expect(text).toContain('link 18 is dead');
  });

  it('are told one by one on the page of the device', () => {
    const lines = conditionTexts(rowOf(links), 0);
    expect([lines.length, told(lines).includes('errors on link 17')]).toEqual([18, true]);
  });
});

describe('what to do about a device with several conditions', () => {
  const one = (type: string, severity: ActiveCondition['severity'], remedy: ActiveCondition['remedy']): ActiveCondition => ({
    ...{ type, class: 'latched', severity, reason: type, message: `it has ${type}`, remedy, sinceMs: 1 },
  });
  const rowOf = (conditions: readonly ActiveCondition[]): DeviceView =>
    of([gpu('a', { verdict: { state: 'unhealthy', sinceMs: 1, conditions } })]).devices[0] as DeviceView;

  it('is the remedy of the one that leads, wherever it is told', () => {
    const row = rowOf([one('Lost', 'fatal', 'reboot'), one('NotRead', 'degraded', 'inspect'), one('Note', 'info', 'verify')]);
    const texts = [told(whyLines(row, 0)), told(conditionTexts(row, 0)), sentenceOf({ ...of([]), devices: [row] })];
    for (const text of texts) {
      expect(text).toMatch(/rain and reboot the node/);
      expect(text).not.toMatch(/nspect the node|No reading shows/);
    }
  });

  it('is that of the next one where the first asks for nothing, and of a note only where no other asks', () => {
    expect(told(whyLines(rowOf([one('Lost', 'fatal', 'none'), one('NotRead', 'degraded', 'inspect')]), 0))).toContain('Inspect the node');
    const noted = { ...rowOf([one('Note', 'info', 'check-power')]) };
    expect(told(conditionTexts(noted, 0))).toContain('Check power supply');
  });
});

describe('the readings of a row', () => {
  const readingsOf = (readings: DeviceState['readings'], rateOf?: () => number | undefined) =>
    boardOf({ ...sample, devices: [state(device({ id: 'a' }), { readings })] }, { nowMs: 0, ...(rateOf && { rateOf }) }).devices[0]?.shown;
  const reading = (metric: string, value: number | bigint, labels?: Record<string, string>) => ({
    metric,
    value,
    ...(labels && { labels }),
  });

  it('of a GPU are how busy and how full it is, and its power against its limit', () => {
    expect(
      readingsOf(
        Readings.of([
          reading('device_utilization_ratio', 0.2, { engine: 'memory' }),
          reading('device_utilization_ratio', 0.87, { engine: 'gpu' }),
          reading('device_memory_used_bytes', 40n * 2n ** 30n),
          reading('device_memory_total_bytes', 80n * 2n ** 30n),
          reading('device_power_watts', 350, { sensor: 'gpu' }),
          reading('device_power_limit_watts', 700, { limit: 'enforced' }),
          reading('device_temperature_celsius', 60, { sensor: 'gpu' }),
        ]),
      ),
    ).toEqual([
      { label: 'Busy', text: '87 %', value: 0.87, ratio: 0.87, limit: 1 },
      { label: 'Memory', text: '40 GiB of 80 GiB', value: 40 * 2 ** 30, ratio: 0.5, limit: 80 * 2 ** 30 },
      { label: 'Power', text: '350 W of 700 W', value: 350, ratio: 0.5, limit: 700 },
    ]);
  });

  const port = [
    reading('device_received_bytes_total', 19_131_000_000_000n, { port: '1' }),
    reading('device_transmitted_bytes_total', 7n, { port: '1' }),
    reading('device_link_up', 1, { port: '1' }),
    reading('device_link_speed_bytes_per_second', 50e9, { port: '1' }),
  ];

  it('of an HCA are rates against the speed of the link, and never a total', () => {
    expect(readingsOf(Readings.of(port), () => 25e9)).toEqual([
      { label: 'In', text: '200 Gbit/s', value: 25e9, ratio: 0.5, limit: 50e9 },
      { label: 'Out', text: '200 Gbit/s', value: 25e9, ratio: 0.5, limit: 50e9 },
      { label: 'Link', text: 'up, 400 Gbit/s', value: 1 },
    ]);
    const [idle] = readingsOf(Readings.of(port), () => 6_875) ?? [];
    expect(idle, 'the rounded ratio of 55 kbit/s is 0').toEqual({ label: 'In', text: '55 kbit/s', value: 6_875, ratio: 0, limit: 50e9 });
    expect(sparkline({ shown: [idle as DisplayReading] }, [0, 6_875, 6_875])?.text).toContain('M0 19h1L1 19L2 19');
    expect(sparkText([0, 6_875, 6_875], idle?.limit, 3)).toBe('▁▁▁');
    const unknown = readingsOf(Readings.of(port), () => undefined);
    expect(unknown?.map(({ text }) => text)).toEqual(['no rate yet', 'no rate yet', 'up, 400 Gbit/s']);
    expect(unknown?.[0]).not.toHaveProperty('value');
  });

  it('of a board name the sensor that is closest to its limit', () => {
    const [first] =
      readingsOf(
        Readings.of([
          reading('device_temperature_celsius', 70, { sensor: 'board' }),
          reading('device_temperature_celsius', 60, { sensor: 'core' }),
          reading('device_temperature_limit_celsius', 100, { sensor: 'board', limit: 'crit' }),
          reading('device_temperature_limit_celsius', 66, { sensor: 'core', limit: 'max' }),
          reading('device_temperature_limit_celsius', 5, { sensor: 'board', limit: 'min' }),
        ]),
      ) ?? [];
    expect(first).toEqual({ label: 'Temp. core', text: '60 °C of 66 °C', value: 60, ratio: 0.909, limit: 66 });
  });

  it('of a GPU that tells a margin in place of its limit are its own temperature against the limit, and not that of a hotter memory', () => {
    const of = (...margins: Reading[]) =>
      readingsOf(
        Readings.of([
          reading('device_temperature_celsius', 88, { sensor: 'gpu' }),
          reading('device_temperature_celsius', 94, { sensor: 'memory' }),
          ...margins,
        ]),
      )?.[0];
    const margin = reading('device_nvidia_temperature_margin_celsius', -1);
    const slowdown = reading('device_nvidia_temperature_limit_margin_celsius', -2, { limit: 'slowdown' });
    const shutdown = reading('device_nvidia_temperature_limit_margin_celsius', -8, { limit: 'shutdown' });
    expect(of(margin, shutdown, slowdown)).toEqual({ label: 'Temperature', text: '88 °C of 89 °C', value: 88, ratio: 0.989, limit: 89 });
    expect(of(margin)).toMatchObject({ text: '88 °C of 87 °C' });
    expect(of(shutdown, slowdown), 'without a limit the hottest counts').toMatchObject({ label: 'Temp. memory', text: '94 °C' });
  });

  it('of a kind that its family describes are those, as far as they are known', () => {
    const shown: readonly PageReading[] = [
      { label: 'Power', metric: 'device_toy_asleep', words: { 1: 'asleep' } },
      'memory',
      { label: 'Wear', metric: 'device_toy_wear_ratio', full: 1 },
      { label: 'Drops', metric: 'device_toy_drops_total' },
      { label: 'Busy', metric: 'device_toy_busy_seconds_total', labels: { queue: '0' }, full: 1 },
      'traffic',
    ];
    const chosen = (rate: number | undefined, ...readings: Reading[]) =>
      boardOf(
        { ...sample, devices: [state(device({ id: 'a', kind: 'drive' }), { readings: Readings.of(readings) })] },
        { nowMs: 0, rateOf: () => rate, shownOf: (_family, kind) => (kind === 'drive' ? shown : undefined) },
      ).devices[0]?.shown;
    const drops = [reading('device_toy_drops_total', 5, { port: '1' }), reading('device_toy_drops_total', 7, { port: '2' })];
    const all = [
      reading('device_toy_asleep', 0),
      reading('device_toy_wear_ratio', 0.25),
      ...drops,
      reading('device_toy_busy_seconds_total', 9, { queue: '0' }),
      reading('device_toy_busy_seconds_total', 9, { queue: '1' }),
    ];
    expect(chosen(0.5, ...all)).toEqual([
      { label: 'Wear', text: '25 %', value: 0.25, ratio: 0.25, limit: 1 },
      { label: 'Drops', text: '1/s', value: 1 },
      { label: 'Busy', text: '50 %', value: 0.5, ratio: 0.5, limit: 1 },
    ]);
    expect(chosen(undefined, ...drops)).toEqual([{ label: 'Drops', text: 'no rate yet' }]);
    expect(chosen(undefined, reading('device_toy_asleep', 1))).toEqual([{ label: 'Power', text: 'asleep', value: 1 }]);
    expect(chosen(1e6, ...port)).toEqual([{ label: 'Traffic', text: '8 Mbit/s in, 8 Mbit/s out', value: 2e6 }]);
    expect(chosen(undefined, reading('device_toy_flow_rpm', 900)), 'nothing else takes their place').toEqual([]);
  });

  it('of an unknown kind are its first values with a natural limit; NaN, facts and states are none', () => {
    expect(
      readingsOf(
        Readings.of([
          reading('device_toy_info', 1, { model: 'x' }),
          reading('device_toy_state', 1, { state: 'on' }),
          reading('device_toy_crossings_total', 9),
          reading('device_toy_flow_rpm', 900),
          reading('device_toy_wear_ratio', 0.25),
          reading('device_toy_noise_ratio', Number.NaN),
        ]),
      ),
    ).toEqual([
      { label: 'Toy wear', text: '25 %', value: 0.25, ratio: 0.25, limit: 1 },
      { label: 'Toy flow', text: '900 rpm', value: 900 },
    ]);
  });
});

it('tells with a condition how long the condition lasts, and with the state how long the state does', () => {
  const since = (minutes: number): number => TAKEN_AT_MS - minutes * 60_000;
  const hot = { type: 'TooHot', class: 'latched', severity: 'degraded', reason: 'Heat', message: 'hot', remedy: 'check-cooling' } as const;
  const verdict = { state: 'unknown', sinceMs: since(1), conditions: [{ ...hot, sinceMs: since(11) }] } as const;
  const words = (devices: readonly DeviceState[]): string => sayHtml(of(devices)).text.replaceAll(/<[^>]*>/g, '');
  const alone = words([gpu('a', { verdict })]);
  expect(alone).toContain('Since 11:49:00 UTC, 11 min · TooHot · unknown for 1 min');
  const lost = {
    state: 'unhealthy',
    sinceMs: since(3),
    conditions: [{ ...hot, type: 'Lost', severity: 'fatal', sinceMs: since(5) }],
  } as const;
  const both = words([gpu('a', { verdict }), gpu('b', { verdict: lost })]);
  expect(both).toContain('Since 11:55:00 UTC, 5 min · Lost');
  expect(both).toContain('Unknown a has TooHot: check fans, heat sink and air flow · since 11:49:00, 11 min · Events and records');
});

it('counts each device once, in the state that it shows, and the count leads to as many', () => {
  const hot = { type: 'TooHot', class: 'latched', severity: 'fatal', reason: 'Heat', message: 'hot', remedy: 'none', sinceMs: 1 } as const;
  const ended = { ...hot, recovering: { sinceMs: 2, untilMs: TAKEN_AT_MS + 1 } };
  const pending = [{ ...hot, countsAtMs: TAKEN_AT_MS + 1 }];
  const board = of([
    gpu('a', sick),
    gpu('b', { verdict: { state: 'unhealthy', sinceMs: 1, conditions: [ended] } }),
    gpu('c', { verdict: { state: 'healthy', sinceMs: 1, conditions: [], pending } }),
    gpu('d'),
  ]);
  const counts = stateCounts(board.devices);
  expect(counts).toEqual([
    ['unhealthy', 1],
    ['pending', 1],
    ['recovering', 1],
    ['healthy', 1],
  ]);
  for (const [state, count] of counts) {
    expect(chipsHtml(board, DEFAULT_VIEW).text).toContain(`${count} ${state}`);
    expect(viewOf(board, { ...DEFAULT_VIEW, state }).flatMap(({ rows }) => rows)).toHaveLength(count);
  }
});

it('says of a fault when it began, as its record does, and why it counts since later', () => {
  const since = (seconds: number): number => TAKEN_AT_MS - seconds * 1_000;
  const at = (seconds: number): string => new Date(since(seconds)).toISOString();
  const one = (type: string, seconds: number): ActiveCondition => ({ ...reset, type, sinceMs: since(seconds) });
  const told = (seconds: number, conditions: readonly ActiveCondition[], record: { readonly time: string; readonly began?: string }) => {
    const devices = [gpu('a', { verdict: { state: 'unhealthy', sinceMs: since(seconds), conditions } })];
    const snapshot = { ...sample, allocations: [], podResources: podResources([], { answeredAtMs: TAKEN_AT_MS }), devices };
    const incident = { id: 'one', device: 'toy/a', holders: [], conditions: conditions.map(({ type }) => type), ...record };
    return sayHtml(boardOf(snapshot, { nowMs: TAKEN_AT_MS, incidents: [incident] })).text.replaceAll(/<[^>]*>/g, '');
  };
  expect(told(60, [one('Lost', 58), one('Error', 60)], { time: at(60) }), 'one fault, two conditions').toContain(
    'Since 11:59:00 UTC, 1 min · Lost, Error · Record',
  );
  expect(told(30, [one('Lost', 60)], { time: at(30), began: at(60) })).toContain('Since 11:59:00 UTC, 1 min · counted after 30 s · Lost');
});

it('gives each of several faults its link, its command and its record, and a part whose whole is the cause none of its own', () => {
  const fault = (type: string, remedy: ActiveCondition['remedy']): ActiveCondition => ({ ...reset, type, remedy });
  const ill = (condition: ActiveCondition) => ({ verdict: { state: 'unhealthy', sinceMs: 1, conditions: [condition] } }) as const;
  const devices = [
    gpu('a', ill(fault('Lost', 'reboot'))),
    gpu('b', ill(fault('TooHot', 'check-cooling'))),
    gpu('c', ill(fault('Slow', 'inspect'))),
    gpu('c-0', ill({ ...fault('CardFault', 'inspect'), causedBy: 'c' }), 'c'),
  ];
  const snapshot = { ...sample, allocations: [], podResources: podResources([], { answeredAtMs: TAKEN_AT_MS }), devices };
  const incident = { id: 'of-b', time: new Date(1).toISOString(), device: 'toy/b', holders: [], conditions: ['TooHot'] };
  const { text } = sayHtml(boardOf(snapshot, { nowMs: TAKEN_AT_MS, incidents: [incident], node: 'n1' }));
  const lines = text.split('<ul class="also">')[1]?.split('</li>').slice(0, -1) ?? [];
  expect(lines.map((line) => [...line.matchAll(/href="(.*?)"|<code>(.*?)<\/code>/g)].map(([, link, code]) => link ?? code))).toEqual([
    ['/devices/toy/b', '/incidents/of-b', 'kubectl cordon n1'],
    ['/devices/toy/c', '/devices/toy/c#record', 'kubectl cordon n1'],
  ]);
  const cured = of([gpu('c'), gpu('c-0', ill({ ...fault('CardFault', 'inspect'), causedBy: 'c' }), 'c')]);
  expect(sentenceOf(cured), 'a fault is not hidden behind a healthy whole').toContain('c-0 has CardFault');
});

it('has one row for many quiet parts, by placement too, and one for the other parts of a device that has a fault', () => {
  const parts = Array.from({ length: 60 }, (_, at) => gpu(`a-${at}`, {}, 'a'));
  const { devices } = of([
    gpu('a'),
    ...parts,
    gpu('b'),
    gpu('b-0', { verdict: { state: 'unhealthy', sinceMs: 1, conditions: [reset] } }, 'b'),
    gpu('b-1', {}, 'b'),
  ]);
  for (const group of ['tree', 'placement'] as const) {
    const view = { ...DEFAULT_VIEW, group };
    const keys = viewOf({ devices }, view).flatMap(({ rows }) => tableRows(rows, view).map(({ key }) => key.replace('toy/', '')));
    expect(keys.toSorted(), group).toEqual(['a', 'b', 'b-0', 'b-1', 'parts of a']);
  }
});

it('heads a group of the map with what people call its devices and its model, and counts one part as one', () => {
  const hca = state(device({ family: 'toy', id: 'x', kind: 'pf', model: 'MT1', product: 'Connect 1' }));
  const part = state(device({ family: 'toy', id: 'x-0', kind: 'vf', parent: 'x' }));
  const board = of([hca, part], { families: [{ ...(sample.families[0] as (typeof sample.families)[number]), family: 'toy' }] });
  const titled = { ...board, families: board.families.map((one) => ({ ...one, title: 'HCA' })) };
  const heads = (shown: Board): string => (/<h3>(.*?)<\/h3>/.exec(mapHtml(shown).text)?.[1] ?? '').replaceAll(/<[^>]*>/g, '');
  expect([heads(titled), heads(board)]).toEqual(['HCA 1 × Connect 1, 1 part0 of 1 held', 'toy 1 × Connect 1, 1 part0 of 1 held']);
});
