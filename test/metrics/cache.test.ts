import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { createExposition } from '../../src/metrics/exposition.ts';
import { HardwareSections } from '../../src/metrics/hardware-sections.ts';
import { createCatalogue } from '../../src/metrics/reading-metrics.ts';
import { type Format, renderPage } from '../../src/metrics/render.ts';
import type { Reading } from '../../src/model/metric.ts';
import { Readings } from '../../src/model/readings.ts';
import type { DeviceState, Snapshot } from '../../src/model/snapshot.ts';
import { seeded } from '../support/seeded.ts';
import { device } from '../support/snapshots.ts';
import { randomSnapshot } from './random-snapshot.ts';
import { families, snapshot, state, stats } from './sample.ts';

const FORMATS: readonly Format[] = ['text', 'openmetrics'];

/** The same part of the page by prom-client's registry, from nothing that an earlier snapshot left behind. */
async function byRegistry(shown: Snapshot, format: Format): Promise<string> {
  return renderPage(new HardwareSections(createCatalogue(families)).of(shown), format);
}

/** The part about devices and containers, whole. */
const textOf = (kept: readonly Buffer[]): string => Buffer.concat(kept).toString();

const following = (first: Snapshot) => {
  let now = first;
  const page = createExposition({ families, snapshot: () => now, agent: () => stats });
  return { page, show: (next: Snapshot) => (now = next) };
};

/** What a thread sends: equal to what it sent before, with no object in common. */
const asSent = (one: Snapshot): Snapshot => {
  const { devices, containerReadings, ...rest } = structuredClone(one);
  const told = <T extends { readonly readings: Readings }>(part: T): T => ({
    ...part,
    readings: new Readings(part.readings.series, part.readings.values),
  });
  return { ...rest, devices: devices.map(told), containerReadings: containerReadings.map(told) };
};

const withDevices = (devices: readonly DeviceState[]): Snapshot => ({ ...snapshot, devices });
const withReadings = (change: (reading: Reading) => readonly Reading[]): Snapshot =>
  withDevices(snapshot.devices.map((one) => ({ ...one, readings: Readings.of([...one.readings].flatMap(change)) })));

/** What may happen between two snapshots, in an order that makes each one follow something else. */
const story: readonly Snapshot[] = [
  snapshot,
  asSent(snapshot),
  withReadings((reading) => [{ ...reading, value: typeof reading.value === 'bigint' ? reading.value + 1n : reading.value * 2 }]),
  withReadings((reading) => [{ ...reading, ...(reading.labels && { labels: { ...reading.labels, kind: 'other' } }) }]),
  snapshot,
  withReadings((reading) => (reading.metric.endsWith('_celsius') ? [] : [reading])),
  withReadings((reading) => [reading, reading]),
  withDevices(snapshot.devices.toReversed()),
  withDevices(snapshot.devices.slice(1)),
  withDevices([state(device({ id: 'a "new" one' })), ...snapshot.devices]),
  { ...snapshot, allocations: [], containerReadings: [] },
  withDevices(snapshot.devices.map((one) => ({ ...one, verdict: { state: 'unhealthy', sinceMs: 1_000, conditions: [] } }))),
  withDevices(snapshot.devices.map((one) => ({ ...one, device: { ...one.device, firmware: 'newer' } }))),
  { ...snapshot, containerReadings: snapshot.containerReadings.map((one) => ({ ...one, pod: `${one.pod}-again` })) },
  { ...snapshot, devices: [], allocations: [], containerReadings: [], podResources: { ...snapshot.podResources, exclusive: [] } },
  asSent(snapshot),
];

describe('what is kept from one snapshot to the next', () => {
  it.each(FORMATS)('leaves the page as the registry writes it from nothing (%s)', async (format) => {
    const { page, show } = following(snapshot);
    for (const next of story) {
      show(next);
      const { kept } = await page.page(format);
      expect(format === 'text' ? textOf(kept) : `${textOf(kept)}# EOF\n`).toBe(await byRegistry(next, format));
    }
  });

  it.each(FORMATS)('does so for whatever follows whatever (%s)', async (format) => {
    const pick = seeded(7);
    const { page, show } = following(snapshot);
    for (let turn = 0; turn < 400; turn += 1) {
      const next = randomSnapshot(pick);
      show(next);
      const { kept } = await page.page(format);
      expect(format === 'text' ? textOf(kept) : `${textOf(kept)}# EOF\n`, `turn ${turn}`).toBe(await byRegistry(next, format));
    }
  });

  it.each(FORMATS)('does so while values move, grow and shrink, and the series are the same (%s)', async (format) => {
    const pick = seeded(5);
    const value = (): number | bigint =>
      [pick(10), pick(1_000_000), pick(2 ** 24) * 2 ** pick(40), pick(1_000) / 8, BigInt(pick(99)) << 60n, 0, -1][pick(7)] as
        | number
        | bigint;
    const moved = <T extends { readonly readings: Readings }>(part: T): T => {
      if (pick(4) === 0) return part;
      const values = part.readings.values.map((before) => (pick(3) === 0 ? value() : before));
      return { ...part, readings: new Readings(part.readings.series, values) };
    };
    const { page, show } = following(snapshot);
    let next: Snapshot = snapshot;
    for (let turn = 0; turn < 400; turn += 1) {
      next = { ...next, devices: next.devices.map(moved), containerReadings: next.containerReadings.map(moved) };
      show(next);
      const { kept } = await page.page(format);
      expect(format === 'text' ? textOf(kept) : `${textOf(kept)}# EOF\n`, `turn ${turn}`).toBe(await byRegistry(next, format));
    }
  });

  it('counts the same series left out, seen first or again', async () => {
    const dropped = async (shown: Snapshot): Promise<string[]> => {
      const { page, show } = following(shown);
      await page.page('text');
      show(asSent(shown));
      return (await page.text()).split('\n').filter((line) => line.startsWith('device_agent_series'));
    };
    const once = await createExposition({ families, snapshot: () => snapshot, agent: () => stats }).text();
    expect(await dropped(snapshot)).toEqual(once.split('\n').filter((line) => line.startsWith('device_agent_series')));
  });
});

describe('the pieces of a page', () => {
  const METRICS = ['device_errors_total', 'device_memory_used_bytes', 'device_temperature_celsius', 'device_toy_crossings_total'] as const;
  /** So many, with names so long, that the samples of one metric are worth a piece. */
  const devices = Array.from({ length: 200 }, (_, n) => device({ id: `toy-${n}-${'x'.repeat(400)}` }));
  /** `values`: of each metric, for all devices. */
  const shown = (values: readonly number[], among = devices): Snapshot =>
    withDevices(
      among.map((one) =>
        state(
          one,
          {},
          METRICS.map((metric, at) => ({ metric, value: values[at] as number })),
        ),
      ),
    );
  const pieceOf = (kept: readonly Buffer[], metric: string): Buffer | undefined =>
    kept.find((piece) => piece.includes(`# TYPE ${metric} `));

  it('stay the same buffers where no metric in them changed', async () => {
    const { page, show } = following(shown([1, 1, 1, 1]));
    const keptAfter = async (values: readonly number[]): Promise<readonly Buffer[]> => {
      show(shown(values));
      return (await page.page('text')).kept;
    };
    await keptAfter([1, 1, 1, 1]);
    // Which one moves is known from here on.
    const before = await keptAfter([1, 1, 2, 1]);
    const after = await keptAfter([1, 1, 3, 1]);
    expect(METRICS.map((metric) => pieceOf(after, metric) === pieceOf(before, metric))).toEqual([true, true, false, true]);
    // One that never did before takes those that stood with it along, once.
    const other = await keptAfter([1, 5, 3, 1]);
    expect(METRICS.map((metric) => pieceOf(other, metric) === pieceOf(after, metric))).toEqual([false, false, true, true]);
    expect(pieceOf(other, 'device_memory_used_bytes')).not.toBe(pieceOf(other, 'device_errors_total'));
  });

  it('of a metric that changed once are one again with those beside it', async () => {
    const { page, show } = following(shown([1, 1, 1, 1]));
    let kept: readonly Buffer[] = [];
    const errorsAlone: boolean[] = [];
    for (let turn = 0; turn < 60; turn += 1) {
      show(shown([1, turn < 5 ? 1 : 2, turn, 1]));
      kept = (await page.page('text')).kept;
      errorsAlone.push(pieceOf(kept, 'device_errors_total') !== pieceOf(kept, 'device_memory_used_bytes'));
    }
    expect([errorsAlone[3], errorsAlone[6], errorsAlone[30], errorsAlone[59]]).toEqual([false, true, true, false]);
    expect(pieceOf(kept, 'device_temperature_celsius')).not.toBe(pieceOf(kept, 'device_errors_total'));
  });

  it.each(FORMATS)('make up the page, whatever moves, comes and goes (%s)', async (format) => {
    const pick = seeded(3);
    const { page, show } = following(snapshot);
    const values = METRICS.map(() => 1);
    let among = devices;
    let before: readonly Buffer[] = [];
    let [most, taken] = [0, 0];
    for (let turn = 0; turn < 40; turn += 1) {
      if (pick(3) === 0) values[pick(METRICS.length)] = pick(1_000);
      else values[2] = turn;
      if (pick(8) === 0) among = devices.slice(pick(3));
      const next = shown(values, among);
      show(next);
      const { kept } = await page.page(format);
      expect(format === 'text' ? textOf(kept) : `${textOf(kept)}# EOF\n`, `turn ${turn}`).toBe(await byRegistry(next, format));
      most = Math.max(most, kept.length);
      taken += kept.filter((piece) => before.includes(piece)).length;
      before = kept;
    }
    expect([most > 2, taken > 10]).toEqual([true, true]);
  });
});

describe('label texts', () => {
  /** Counts how often a value of these labels is looked at. */
  const counted = (labels: Readonly<Record<string, string>>) => {
    const looks = { count: 0 };
    const get = (target: typeof labels, name: string | symbol): string | undefined => {
      looks.count += 1;
      return target[String(name)];
    };
    return { labels: new Proxy(labels, { get }), looks };
  };

  it('are not made again for labels, devices and holders that are the same objects as before', async () => {
    const { labels, looks } = counted({ kind: 'parity' });
    const { labels: identity, looks: identityLooks } = counted({ ...snapshot.devices[0]?.device } as Record<string, string>);
    const shown = (value: number): Snapshot =>
      withDevices([state(identity as unknown as DeviceState['device'], {}, [{ metric: 'device_errors_total', labels, value }])]);
    const { page, show } = following(shown(1));
    const first = textOf((await page.page('text')).kept);
    expect(first).toContain('device_errors_total{device="toy-0",kind="parity"} 1\n');
    const looked = [looks.count, identityLooks.count];
    expect(Math.min(...looked), 'the first page looks').toBeGreaterThan(0);
    show(shown(2));
    const second = textOf((await page.page('text')).kept);
    expect(second).toBe(first.replace('kind="parity"} 1\n', 'kind="parity"} 2\n'));
    expect(looks.count).toBe(looked[0]);
    // Its id and family are asked for again, to join it with its holders, and nothing that only its labels need.
    expect(identityLooks.count - (looked[1] as number)).toBeLessThan(5);
  });
});

describe('one snapshot', () => {
  it('is written once per format: scrapes get the very same bytes', async () => {
    const { page, show } = following(snapshot);
    const [text, open] = [(await page.page('text')).kept, (await page.page('openmetrics')).kept];
    expect((await page.page('text')).kept).toBe(text);
    expect((await page.page('openmetrics')).kept).toBe(open);
    show(asSent(snapshot));
    expect((await page.page('text')).kept).not.toBe(text);
    expect(textOf((await page.page('text')).kept)).toBe(textOf(text));
  });

  it('is not kept for a format that is asked for no more', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const { page, show } = following(snapshot);
    const lookOnce = async (): Promise<readonly WeakRef<object>[]> => {
      const shown = asSent(snapshot);
      show(shown);
      const { kept } = await page.page('text');
      return [shown, kept, ...kept].map((part) => new WeakRef(part));
    };
    const seen = await lookOnce();
    for (let turn = 0; turn < 40; turn += 1) {
      show(asSent(snapshot));
      await page.page('openmetrics');
    }
    // What a weak reference was made to is held until then.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    expect(seen.map((one) => one.deref())).toEqual(seen.map(() => undefined));
  });

  it('does not change bytes that an earlier scrape still sends', async () => {
    const { page, show } = following(snapshot);
    const { kept } = await page.page('text');
    const before = textOf(kept);
    show(withReadings((reading) => [{ ...reading, value: 1 }]));
    await page.page('text');
    expect(textOf(kept)).toBe(before);
  });
});
