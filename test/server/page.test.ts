import { afterEach, describe, expect, it } from 'vitest';
import { html } from '../../src/board/html.ts';
import { metricTitle, readingText } from '../../src/board/units.ts';
import { durationText } from '../../src/model/duration.ts';
import type { Verdict } from '../../src/model/health.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { snapshot, state, TAKEN_AT_MS } from '../metrics/sample.ts';
import { device, familyState, podResources } from '../support/snapshots.ts';
import { type Started, start } from './start.ts';

const answered: Snapshot = { ...snapshot, podResources: podResources([], { answeredAtMs: TAKEN_AT_MS }) };
const NOT_KNOWN = 'It is not known whether such a pod holds a device:';

let started: Started | undefined;
afterEach(() => started?.server.close());

const page = async (now: Snapshot | undefined, path = '/') => {
  started = await start({ snapshot: () => now });
  const response = await fetch(started.url + path);
  return { text: await response.text(), headers: response.headers };
};

describe('the page of devices', () => {
  it('shows device, health, condition, remedy, holder and reading', async () => {
    const { text } = await page(snapshot);
    for (const part of [
      '>toy-0</a>',
      'Toy &quot;Deluxe&quot;',
      '<span class="s degraded">Degraded</span>',
      '<a href="/conditions#toy.TooWarm"><b>TooWarm (core)</b></a>',
      '91 °C &lt;over&gt; 90 °C',
      'Check fans, heat sink and air flow.',
      '<span class="soft ns">ml/</span><a href="/pods/ml/train-0" tabindex="-1">train-0</a>',
      '<span>Temperature</span><b>41.5 °C</b>',
      '<span>Memory</span><b>1 GiB</b>',
      '<span class="s missing">Missing</span>',
      '<h1><a href="/devices/toy/toy-2">toy-2</a> is missing, <a href="/pods/ml/gone-0">ml/gone-0</a> is hit</h1>',
      '<title>(3) node-1: toy-2 is missing</title>',
      'device-agent 1.2.3',
      'LinkNarrow is ignored until 2026-04-01: known riser',
    ]) {
      expect(text).toContain(part);
    }
    expect(text).not.toMatch(/NaN|undefined|\[object/);
  });

  it('shows what is wrong with kubelet and probes, and the way out', async () => {
    const { text } = await page(snapshot);
    expect(text).toContain('connect ECONNREFUSED &lt;socket&gt;');
    expect(text).toContain('the kubelet is stopped or restarting');
    expect(text).toContain('open wire/&lt;ctl&gt;: ENOENT');
    expect(text).toContain('A read hangs');
    expect(text).toContain('No probe found a device with this name.');
    const toy = { ...familyState('toy'), problems: [{ code: 'driver-missing', message: 'no /dev/toy' }] };
    await started?.server.close();
    expect((await page({ ...snapshot, families: [toy] })).text).toContain('Load the toy driver.');
  });

  it('leads from a device to its board in Grafana, where one is configured', async () => {
    const path = `/devices/toy/${encodeURIComponent(snapshot.devices[0]?.device.id ?? '')}`;
    expect((await page(snapshot, path)).text).not.toContain('board of the device');
    await started?.server.close();
    started = await start({ snapshot: () => snapshot, options: { 'grafana-url': 'https://grafana.example/team/' } });
    const text = await (await fetch(started.url + path)).text();
    const address = `https://grafana.example/team/d/device-agent-device?var-node=node-1&amp;var-device=${snapshot.devices[0]?.device.id}`;
    expect(text).toContain(`<a href="${address}">board of the device</a>`);
  });

  it('explains first the conditions of the families that the node has', async () => {
    const conditions = [
      {
        type: 'TooWarm',
        class: 'self-clearing',
        severity: 'degraded',
        meaning: 'It is warm.',
        reasons: [],
        remedy: 'inspect',
        source: 'x',
      },
    ] as const;
    const named = (name: string) => ({ name, problems: [], conditions });
    started = await start({ snapshot: () => snapshot, parts: { families: [named('absent'), named('toy')] } });
    const text = await (await fetch(`${started.url}/conditions`)).text();
    expect(text.match(/<h3>/g), 'what both families have in the same words is there once').toHaveLength(conditions.length);
    expect(text.indexOf('id="toy.')).toBeGreaterThan(0);
    expect(text.indexOf('id="toy.')).toBeLessThan(text.indexOf('id="absent.'));
  });

  it('has a policy that allows files of this server alone, and each file that it names', async () => {
    const { text, headers } = await page(snapshot);
    expect(text).not.toMatch(/javascript:|\son\w+=|\sstyle=|https?:\/\/|<script(?! type="module" src="\/assets\/)/i);
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toBe(
      `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
    );
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    for (const [, path] of text.matchAll(/(?:href|src|data-\w+)="(\/assets\/[^"]+)"/g))
      expect((await fetch(`${started?.url}${path}`)).status, path).toBe(200);
  });

  it('lets no text of pods, devices or problems become markup', async () => {
    const evil = `"><img src=x onerror='a'>&`;
    const holder = { namespace: evil, pod: evil, container: evil, resource: evil, deviceId: evil, numaNodes: [] };
    const one = state(device({ id: evil, family: evil, kind: evil, model: evil }), { holders: [holder] }, [
      { metric: 'device_temperature_celsius', labels: { sensor: evil }, value: 1 },
    ]);
    const now: Snapshot = {
      ...snapshot,
      devices: [one],
      allocations: [{ allocation: holder, devices: [], unresolved: 'no-device', held: false }],
      families: [{ ...familyState(evil), problems: [{ code: evil, message: evil }] }],
    };
    const { text } = await page(now);
    expect(text).not.toContain('<img');
    const link = /<a class="id" href="([^"]+)"/.exec(text)?.[1]?.replaceAll('&#39;', "'") ?? '';
    const details = await fetch((started?.url ?? '') + link);
    expect(details.status).toBe(200);
    expect(await details.text()).not.toContain('<img');
  });

  it('gives the day until which something is ignored, also where that is for ever', async () => {
    const untilMs = Date.parse('9999-12-31T00:00:00Z') + 86_400_000;
    const devices = snapshot.devices.map((one) => {
      const ignored = one.verdict.ignored?.map((condition) => ({ ...condition, ignoredUntilMs: untilMs }));
      return ignored === undefined ? one : { ...one, verdict: { ...one.verdict, ignored } };
    });
    expect((await page({ ...snapshot, devices })).text).toContain('LinkNarrow is ignored until 9999-12-31: known riser');
  });

  it('says that there is nothing yet, or no device', async () => {
    expect((await page(undefined)).text).toContain('The agent reads the hardware for the first time.');
    await started?.server.close();
    expect((await page({ ...snapshot, devices: [], families: [familyState('toy')] })).text).toContain(
      'No probe found a device on this node.',
    );
  });

  it('leads to each place that it names, also where no row is shown', async () => {
    for (const [shown, path] of [
      [snapshot, '/?text=nothing-like-it'],
      [snapshot, '/?group=pod&text=nothing-like-it'],
      [{ ...snapshot, devices: [], allocations: [] }, '/?group=placement'],
      [undefined, '/'],
    ] as const) {
      const { text } = await page(shown, path);
      const places = [...text.matchAll(/ href="#([^"]+)"/g)].map(([, id]) => id);
      expect(
        places.filter((id) => !text.includes(` id="${id}"`)),
        path,
      ).toEqual([]);
      await started?.server.close();
    }
  });

  it('does not say that there is none while a family was not read yet', async () => {
    const { succeeded: _succeeded, ...starts } = { ...familyState('toy'), runs: 0, readCompletely: false };
    const { problem: _problem, ...podResources } = snapshot.podResources;
    const { text } = await page({ ...snapshot, devices: [], families: [familyState('wire'), starts], podResources });
    expect(text).toContain('<section class="say unknown" aria-label="State of the node"><h1>The first read runs</h1>');
    expect(text).toContain('Not read yet: toy.</p>');
    expect(text).toContain('No probe found a device with this name so far. Not read yet: toy.');
    expect(text).not.toMatch(/No probe found a device (?:on|with this name\.)/);
    const browser = { headers: { accept: 'text/html' } };
    for (const path of ['/', '/incidents', '/agent', '/pods/ml/lost-0']) {
      const other = await (await fetch(`${started?.url}${path}`, browser)).text();
      expect(other, path).toMatch(/<link rel="icon" type="image\/svg\+xml" href="\/assets\/icon-unknown/);
      expect(other, path).toContain('<span id="worst"><span class="s bare unknown">');
      expect(other, path).not.toMatch(/No such hardware: .*toy|holds none|holds no device/);
    }
    const early = await fetch(`${started?.url}/devices/toy/toy-0`, browser);
    expect(early.status).toBe(503);
    const told = await early.text();
    expect(told).toContain('<h1>The first read runs.</h1>');
    expect(told).toContain('<meta http-equiv="refresh" content="2">');
    expect(told).toContain('Not read yet: toy.');
    expect((await fetch(`${started?.url}/api/v1/devices/toy/toy-0`)).status).toBe(503);
    expect((await fetch(`${started?.url}/devices/wire/toy-0`, browser)).status, 'its family was read').toBe(404);
  });

  it('has the sick devices first, also where there are more than it shows', async () => {
    const healthy = { state: 'healthy', sinceMs: 0, conditions: [] } as const;
    const named = (id: string, verdict: Verdict = healthy) => ({ ...state(device({ id })), verdict });
    const many = Array.from({ length: 1_100 }, (_, at) => named(`well-${String(at).padStart(4, '0')}`));
    const devices = [...many, named('worn', { ...healthy, state: 'degraded' }), named('zapped', { ...healthy, state: 'unhealthy' })];
    const { text } = await page({ ...snapshot, devices });
    const shown = [...text.matchAll(/<a class="id"[^>]*>([^<]+)/g)].map(([, id]) => id);
    expect(shown.slice(0, 4)).toEqual(['zapped', 'worn', 'well-0000', 'well-0001']);
    expect(shown).toHaveLength(1_000);
    expect(text).toContain('1102 devices. 102 more rows are not shown. Use a filter.');
  });

  it('shows a device with all its readings', async () => {
    const { text } = await page(snapshot, '/devices/toy/toy-0');
    expect(text).toContain('18\u202f446\u202f744\u202f073\u202f709\u202f551\u202f615');
    expect(text).toContain('<dt>PCI address</dt><dd>0000:3b:00.0</dd>');
    expect((await (await fetch(`${started?.url}/devices/toy/toy-1`)).text()).match(/<span class="num">[^<]*/g)).toHaveLength(5);
    expect(text.split('<main')[1], 'no name of a metric').not.toMatch(/<code>device_/);
  });

  it('refuses a view that it does not know, and shows one that is in the address', async () => {
    expect((await page(snapshot, '/?state=sick')).text).toContain('The parameter "state" must be one of');
    await started?.server.close();
    expect((await page(snapshot, '/?sate=healthy')).text).toContain('There is no parameter "sate"');
    await started?.server.close();
    const { text } = await page(snapshot, '/?state=degraded&sort=name');
    expect([...text.matchAll(/<a class="id"[^>]*>([^<]+)/g)].map(([, id]) => id)).toEqual(['toy-1']);
    expect(text).toContain('value="state:degraded"');
    expect(text).toContain('1 of 5 devices.');
  });

  it('shows an error as a page to a browser, with similar names, and as a line to others', async () => {
    started = await start({ snapshot: () => answered });
    const html = { headers: { accept: 'text/html' } };
    const unknown = await fetch(`${started.url}/devices/toy/toy-99`, html);
    const text = await unknown.text();
    expect([unknown.status, unknown.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(text).toContain('<h1>No device toy-99 on node-1</h1>');
    expect(text).toContain('<a href="/devices/toy/toy-0">toy-0</a>');
    expect(text).toContain('404 device-unknown');
    const evil = await (await fetch(`${started.url}/devices/toy/${encodeURIComponent('<img src=x>')}`, html)).text();
    expect(evil).not.toContain('<img');
    for (const [path, status] of [
      ['/pods/ml/train-9', 404],
      ['/nowhere', 404],
      ['/?state=sick', 400],
      ['/incidents/none', 404],
    ] as const) {
      const answer = await fetch(started.url + path, html);
      expect([answer.status, (await answer.text()).includes('<a href="/">All devices</a>')], path).toEqual([status, true]);
    }
    expect(await (await fetch(`${started.url}/devices/toy/toy-99`)).text()).toBe('There is no such device.\n');
    expect((await fetch(`${started.url}/api/v1/devices/toy/toy-99`, html)).headers.get('content-type')).toContain('application/json');
  });

  it('shows what a pod holds, and says so where this node knows no such pod', async () => {
    const { text } = await page(answered, '/pods/ml/train-0');
    expect(text).toContain('<h1>train-0 <span class="rest">ml · toy-0</span></h1>');
    expect(text).toContain('>toy-0</a>');
    expect((await fetch(`${started?.url}/pods/ml/nobody`)).status).toBe(404);
  });

  it.each([
    ['answers', answered, undefined, 404, 'pod-unknown', 'No such pod holds a device of this node.'],
    ['does not answer', snapshot, undefined, 503, 'pod-not-known', `${NOT_KNOWN} the kubelet gives no full answer (refused).`],
    ['answered an agent that stands still', answered, 'It hangs.', 503, 'pod-not-known', `${NOT_KNOWN} the agent does not work.`],
  ])('knows that no such pod holds a device only when the kubelet %s', async (_what, now, fault, status, code, message) => {
    started = await start({ snapshot: () => now, parts: { fault: () => fault } });
    for (const path of ['/pods/ml/nobody', '/api/v1/explain/ml/nobody']) expect((await fetch(started.url + path)).status).toBe(status);
    expect(await (await fetch(`${started.url}/pods/ml/nobody`)).text()).toBe(`${message}\n`);
    expect(await (await fetch(`${started.url}/api/v1/explain/ml/nobody`)).json()).toEqual({ error: { code, message } });
    expect((await fetch(`${started.url}/pods/ml/train-0`)).status, 'what was seen stays').toBe(200);
  });

  it('shows the agent, its families and what each condition means, and says what it does not know', async () => {
    const { text } = await page(snapshot, '/agent');
    expect(text).toContain('connect ECONNREFUSED &lt;socket&gt;');
    expect(text).toContain('<span class="s unhealthy">refused</span>');
    expect((await fetch(`${started?.url}/conditions`)).status).toBe(200);
    await started?.server.close();
    const early = (await page(undefined, '/agent')).text;
    expect(early).toContain('Problems are not known before the first snapshot.');
    expect(early).not.toMatch(/There are no problems|Allocations/);
    await started?.server.close();
    const { problem: _problem, ...answered } = snapshot.podResources;
    const free = state(device({ id: 'toy-9' }));
    const told = async (part: Partial<Snapshot>): Promise<string> =>
      (await page({ ...snapshot, devices: [free], podResources: answered, ...part }, '/devices/toy/toy-9')).text;
    expect(await told({ allocations: [] })).toContain('Free: no container holds it.');
    await started?.server.close();
    const lost = snapshot.allocations.filter(({ unresolved }) => unresolved === 'no-device');
    expect(await told({ allocations: lost })).toContain('No container is known to hold it, but some hold ids');
    await started?.server.close();
    const twin = { ...lost[0], unresolved: 'ambiguous', candidates: ['toy/toy-9'] } as Snapshot['allocations'][number];
    expect(await told({ allocations: [twin] })).toContain('A container holds a name that several devices have.');
    expect(await (await fetch(`${started?.url}/incidents`)).text()).toContain('No incident is recorded.');
  });
});

describe('texts for people', () => {
  it.each([
    ['device_temperature_celsius', 41.56, '41.6 °C'],
    ['device_utilization_ratio', 0.375, '37.5 %'],
    ['device_received_bytes_total', 9_007_199_254_740_993n, '8 PiB'],
    ['device_memory_used_bytes', 0, '0 B'],
    ['device_clock_hertz', 1_980_000_000, '1.98 GHz'],
    ['device_throttled_seconds_total', 90_000, '1 d 1 h'],
    ['device_errors_total', 1_234_567, '1\u202f234\u202f567'],
    ['device_errors_total', 1e21, '1e+21'],
    ['device_voltage_volts', 0.851, '0.85 V'],
    ['device_link_speed_bytes_per_second', 25e9, '200 Gbit/s'],
    ['device_nvidia_pcie_throughput_bytes_per_second', 12_345, '98.8 kbit/s'],
    ['device_toy_last_timestamp_seconds', 1_772_366_399.75, '2026-03-01T11:59:59.750Z'],
    ['device_toy_last_timestamp_seconds', 1e18, '1\u202f000\u202f000\u202f000\u202f000\u202f000\u202f000'],
  ])('%s %s is %s', (metric, value, text) => {
    expect(readingText(metric, value)).toBe(text);
  });

  it('name metrics and durations', () => {
    expect(metricTitle('device_pcie_link_width_lanes')).toBe('PCIe lanes');
    expect(metricTitle('device_toy_ecn_marked_total', 'toy'), 'without the name of its family').toBe('ECN marked');
    expect(metricTitle('device_power_watts')).toBe('Power');
    expect([0, 12_340, 61_000, 3_700_000, 90_000_000].map(durationText)).toEqual(['0 s', '12 s', '1 min', '1 h 1 min', '1 d 1 h']);
  });

  it('are escaped when put into markup', () => {
    expect(html`<b title="${`"'<&`}">${[html`<i>`, 1, undefined]}</b>`.text).toBe('<b title="&quot;&#39;&lt;&amp;"><i>1</b>');
  });
});
