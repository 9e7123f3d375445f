import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createExposition, type Exposition } from '../../src/metrics/page/exposition.ts';
import type { Format } from '../../src/metrics/page/page.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import type { Usage } from '../../src/model/usage.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { PROMTOOLS, promtool } from '../support/promtool.ts';
import { families, snapshot, state, stats } from './sample.ts';

const textOf = async (page: Exposition, format: Format = 'text'): Promise<string> =>
  Buffer.concat((await page.page(format)).plain).toString();
/** Lets prepared pages be written. */
const turns = async (): Promise<void> => {
  for (let n = 0; n < 10; n += 1) await turn();
};
const exposition = (now: () => Snapshot | undefined = () => snapshot) => createExposition({ families, snapshot: now, agent: () => stats });

const samples = (page: string): string[] => page.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
const lines = (page: string, name: string): string[] =>
  samples(page).filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
/** Process metrics differ from run to run. */
const withoutProcess = (page: string): string =>
  page.replace(/# HELP (?:process|nodejs)_[\s\S]*?(?=\n\n|$)\n*/g, '').replaceAll(process.version, 'vX');

describe('the metrics page', () => {
  it('shows devices and containers of a snapshot as the golden page has them', async () => {
    await expect(await exposition().devices()).toMatchFileSnapshot('devices.prom');
  });

  it('shows the agent itself as the golden page has it', async () => {
    const page = await textOf(exposition());
    const hardware = await exposition().devices();
    await expect(withoutProcess(page.slice(hardware.length + 1))).toMatchFileSnapshot('agent.prom');
  });

  it('begins with exactly the page of devices', async () => {
    const devices = await exposition().devices();
    expect(await textOf(exposition())).toSatisfy((page: string) => page.startsWith(`${devices}\n# HELP device_agent_`));
    expect(devices).not.toContain('device_agent_');
  });

  it('keeps every digit of a counter beyond 2^53', async () => {
    const page = await textOf(exposition());
    expect(lines(page, 'device_errors_total')).toContain('device_errors_total{device="toy-0",kind="parity"} 18446744073709551615');
    expect(lines(page, 'device_received_bytes_total')).toEqual(['device_received_bytes_total{device="wire-a",port="1"} 9007199254740993']);
  });

  it('has the samples of a histogram together, buckets by their bounds', async () => {
    const name = 'device_agent_plugin_call_duration_seconds';
    for (const page of [await textOf(exposition()), await textOf(exposition(), 'openmetrics')]) {
      const [, type, ...after] = page
        .slice(page.indexOf(`# HELP ${name} `))
        .split('\n')
        .filter((line) => !line.startsWith('# UNIT '));
      expect(type).toBe(`# TYPE ${name} histogram`);
      const labels = (method: string, le = ''): string => `{resource="example.com/toy",method="${method}"${le && `,le="${le}"`}}`;
      const bounds = ['0.001', '0.005', '0.025', '0.1', '0.5', '2.5', '10.0', '+Inf'];
      const whole = (method: string, counts: readonly number[], sum: number): string[] => [
        ...bounds.map((bound, at) => `${name}_bucket${labels(method, bound)} ${counts[at]}`),
        `${name}_sum${labels(method)} ${sum}`,
        `${name}_count${labels(method)} ${counts.at(-1)}`,
      ];
      const expected = [...whole('Allocate', [1, 3, 4, 4, 4, 4, 4, 4], 0.0125), ...whole('ListAndWatch', [0, 0, 0, 0, 1, 1, 1, 1], 0.25)];
      expect(after.slice(0, expected.length)).toEqual(expected);
      expect(after[expected.length]).not.toContain(name);
    }
  });

  it('escapes label values and help in both formats', async () => {
    const [text, open] = [await textOf(exposition()), await textOf(exposition(), 'openmetrics')];
    expect(text).toContain('model="Toy \\"Deluxe\\" \\\\ 2\\nnd edition"');
    expect(text).toContain('kind="a\\"b\\\\c\\nd"');
    expect(text).toContain('# HELP device_toy_crossings_total Crossings with a "quoted" word and a back\\\\slash.');
    expect(open).toContain('# HELP device_toy_crossings Crossings with a \\"quoted\\" word and a back\\\\slash.');
  });

  it('leaves out and counts what is said twice, not declared, or not a number', async () => {
    const page = await textOf(exposition());
    expect(lines(page, 'device_temperature_celsius').filter((line) => line.includes('toy-1'))).toEqual([
      'device_temperature_celsius{device="toy-1",sensor="core"} 91',
    ]);
    expect(page).not.toMatch(/nan|undefined|\[object|device_toy_invented|colour/i);
    expect(lines(page, 'device_agent_series_dropped')).toEqual([
      'device_agent_series_dropped{reason="duplicate"} 1',
      'device_agent_series_dropped{reason="invalid-value"} 1',
      'device_agent_series_dropped{reason="undeclared"} 2',
    ]);
  });

  it('counts the series that it shows', async () => {
    const page = await textOf(exposition());
    const shown = samples(await exposition().devices());
    const containers = shown.filter((line) => /^(?:container|pod)_/.test(line)).length;
    expect(lines(page, 'device_agent_series')).toEqual([
      `device_agent_series{group="container"} ${containers}`,
      `device_agent_series{group="device"} ${shown.length - containers}`,
    ]);
  });

  it('has each HELP and TYPE once and each series once', async () => {
    for (const page of [await textOf(exposition()), await textOf(exposition(), 'openmetrics')]) {
      const heads = page
        .split('\n')
        .filter((line) => line.startsWith('# HELP '))
        .map((line) => line.split(' ')[2]);
      expect(new Set(heads).size).toBe(heads.length);
      const series = samples(page).map((line) => line.slice(0, line.lastIndexOf(' ')));
      expect(new Set(series).size).toBe(series.length);
    }
  });

  it('does not depend on the order in which devices, readings and allocations are told', async () => {
    const reversed: Snapshot = {
      ...snapshot,
      devices: snapshot.devices.toReversed(),
      allocations: snapshot.allocations.toReversed(),
      containerReadings: snapshot.containerReadings.toReversed(),
    };
    expect(await exposition(() => reversed).devices()).toBe(await exposition().devices());
  });

  it('keeps no series of a device that is gone', async () => {
    let now: Snapshot = snapshot;
    const page = exposition(() => now);
    expect(await textOf(page)).toContain('wire-a');
    now = {
      ...snapshot,
      sequence: 2,
      devices: [state(snapshot.devices[0]?.device ?? expect.fail())],
      allocations: [],
      pods: new Map(),
      containerReadings: [],
    };
    const after = await textOf(page);
    expect(after).not.toContain('wire-a');
    expect(after).not.toContain('container_device_');
  });

  it('shows totals as soon as they are on disk, also for the same snapshot', async () => {
    const usageAfter = (allocatedSeconds: number): Usage => {
      const device = { device: 'toy/a', sinceMs: 0, allocatedSeconds, unallocatedSeconds: 0, unhealthySeconds: 0, unobservedSeconds: 0 };
      return { containers: [], devices: [device] };
    };
    let onDisk = usageAfter(1);
    const page = createExposition({
      families,
      snapshot: () => snapshot,
      agent: () => stats,
      usage: () => onDisk,
      clock: new ManualClock(),
    });
    expect(await textOf(page)).toContain('device_allocated_seconds_total{device="a"} 1\n');
    onDisk = usageAfter(2);
    expect(await textOf(page)).toContain('device_allocated_seconds_total{device="a"} 2\n');
  });

  it('is prepared after a snapshot only while somebody scrapes', async () => {
    const clock = new ManualClock();
    let written = 0;
    const next = (): Snapshot => ({
      ...snapshot,
      get devices() {
        written += 1;
        return snapshot.devices;
      },
    });
    let latest = next();
    const page = createExposition({ families, snapshot: () => latest, agent: () => stats, clock });
    page.prepare();
    await turns();
    expect(written, 'nobody has scraped').toBe(0);
    await page.page('text');
    const ofOne = written;
    latest = next();
    page.prepare();
    await turns();
    expect(written).toBeGreaterThan(ofOne);
    const prepared = written;
    await page.page('text');
    expect(written - prepared, 'only what the agent tells of itself').toBeLessThan(ofOne);
    let before = written;
    latest = next();
    page.prepare();
    clock.advance(999);
    await turns();
    expect(written, 'the last page was prepared less than a second ago').toBe(before);
    clock.advance(1);
    await turns();
    expect(written).toBeGreaterThan(before);
    before = written;
    clock.advance(180_000);
    latest = next();
    page.prepare();
    await turns();
    expect(written, 'the scraper has gone').toBe(before);
  });

  it('puts a prefix before the labels of a holder when one is configured, and changes nothing else', async () => {
    const prefixed = createExposition({ families, snapshot: () => snapshot, agent: () => stats, attribution: 'workload_' });
    const plain = exposition().devices();
    const renamed = plain.replaceAll(/([{,])(namespace|pod|container)="/g, '$1workload_$2="');
    const sorted = (page: string): string[] => samples(page).toSorted();
    expect(sorted(prefixed.devices())).toEqual(sorted(renamed));
    expect(prefixed.devices()).not.toMatch(/[{,](?:namespace|pod|container)="/);
  });

  it('gives the readings of a device its UUID as a label when that is configured, and changes nothing else', () => {
    const named = createExposition({ families, snapshot: () => snapshot, agent: () => stats, hasUuids: true }).devices();
    const readings = samples(named).filter((line) => line.includes('uuid="TOY-0",device='));
    expect(readings.length).toBeGreaterThan(2);
    expect(samples(named.replaceAll('{uuid="TOY-0",device=', '{device=')).toSorted()).toEqual(samples(exposition().devices()).toSorted());
  });

  it('shows the agent alone before the first snapshot', async () => {
    const page = exposition(() => undefined);
    expect(await page.devices()).toBe('');
    expect(lines(await textOf(page), 'device_agent_build_info')).toHaveLength(1);
    expect(await textOf(page)).not.toContain('device_agent_snapshot');
    expect(await textOf(page, 'openmetrics')).toMatch(/^# HELP [\s\S]*\n# EOF\n$/);
  });

  it('refuses a metric that two families declare with different meanings', () => {
    const wrong = [families[0], { name: 'other', metrics: [{ ...families[0]?.metrics[0], help: 'Other.' }] }] as typeof families;
    expect(() => createExposition({ families: wrong, snapshot: () => snapshot, agent: () => stats })).toThrow(/declared differently/);
  });
});

describe('OpenMetrics', () => {
  it('ends in # EOF, without blank lines, and names counters without _total in HELP and TYPE only', async () => {
    const page = await textOf(exposition(), 'openmetrics');
    expect(page.endsWith('\n# EOF\n')).toBe(true);
    expect(page.match(/# EOF/g)).toHaveLength(1);
    expect(page).not.toContain('\n\n');
    expect(page).toMatch(/# TYPE device_errors counter\n# UNIT device_errors \ndevice_errors_total\{/);
    for (const [, name, type] of page.matchAll(/# TYPE (\S+) (\S+)/g))
      expect([name?.endsWith('_total'), type]).not.toEqual([true, 'counter']);
    expect(page).not.toContain('_total_total');
  });

  it('names the unit of each metric whose name ends in one, and the text format does not', async () => {
    const page = await textOf(exposition(), 'openmetrics');
    expect(page).toContain('# TYPE device_info gauge\n# UNIT device_info \n');
    expect(page).toContain('# TYPE device_received_bytes counter\n# UNIT device_received_bytes bytes\n');
    for (const [, name, unit] of page.matchAll(/# UNIT (\S+) (\S+)/g)) expect(name?.endsWith(`_${unit}`)).toBe(true);
    expect(await textOf(exposition())).not.toContain('# UNIT');
  });

  it('has the same samples as the text format', async () => {
    const stable = (page: string): string[] => samples(page).filter((line) => !/^(?:process|nodejs)_/.test(line));
    expect(stable(await textOf(exposition(), 'openmetrics'))).toEqual(stable(await textOf(exposition())));
  });

  it('and the text format do not change each other when asked for in turn', async () => {
    let now: Snapshot = snapshot;
    const page = exposition(() => now);
    const first = {
      text: await page.devices(),
      open: withoutProcess(await textOf(page, 'openmetrics'))
        .split('\n')
        .filter((line) => /^device_errors|crossings/.test(line)),
    };
    for (let turn = 0; turn < 100; turn += 1) {
      now = { ...snapshot };
      const [open, text] = [await textOf(page, 'openmetrics'), await page.devices()];
      expect(text).toBe(first.text);
      expect(open.split('\n').filter((line) => /^device_errors|crossings/.test(line))).toEqual(first.open);
    }
  });
});

describe.each(PROMTOOLS)('$program check metrics$skipped', ({ program, isThere }) => {
  const checked = (input: string): readonly string[] =>
    promtool(program, ['check', 'metrics'], { input })
      .split('\n')
      .filter((line) => line !== '');

  it.skipIf(!isThere)('finds nothing to say about the page', async () => {
    expect(checked(await textOf(exposition()))).toEqual([]);
  });

  it.skipIf(!isThere)('finds in the OpenMetrics page only what its parser of the other format does not know', async () => {
    const page = await textOf(exposition(), 'openmetrics');
    // That format has no escape of quotes in HELP, and the HELP of a counter there names `_total` too.
    const said = checked(page.replaceAll(/^# HELP .*$/gm, (line) => line.replaceAll('\\"', "'")));
    expect(said.filter((line) => !line.endsWith('_total no help text'))).toEqual([]);
  });
});
