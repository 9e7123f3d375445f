import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { WebConfigFile } from '../../src/config/web/web-config-file.ts';
import { systemClock } from '../../src/host/clock.ts';
import { OPEN_ACCESS } from '../../src/server/access/access.ts';
import { plainScrape, type Sample, startPrometheus } from '../support/prometheus.ts';
import { PROMETHEUSES } from '../support/promtool.ts';
import { start } from './start.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

describe.each(PROMETHEUSES)('a real Prometheus, $program$skipped', ({ program, isThere }) => {
  const isNewer = program === PROMETHEUSES[1].program;

  it.skipIf(!isThere)('takes the OpenMetrics page in as it is meant', async () => {
    const { url, server } = await start();
    undo.push(() => server.close());
    const flags = isNewer ? ['--enable-feature=type-and-unit-labels'] : [];
    const prometheus = await startPrometheus(plainScrape(new URL(url).host), {}, program, ...flags);
    undo.push(() => prometheus.stop());
    await expect.poll(() => prometheus.targets(), { interval: 250 }).toEqual(['up']);
    const value = async (query: string) => (await prometheus.query(query))[0]?.value[1];
    expect(await value('device_temperature_celsius{device="toy-0"}')).toBe('41.5');
    expect(await value('device_errors_total{device="toy-0",kind="parity"}')).toBe('18446744073709552000');
    expect(await value('device_info{model="Toy \\"Deluxe\\" \\\\ 2\\nnd edition"}')).toBe('1');
    expect(await value('histogram_quantile(0.5, device_agent_probe_run_duration_seconds_bucket{family="toy"})')).toBe('0.015');
    expect(await value('device_agent_probe_run_duration_seconds_count{family="toy"}')).toBe('3');
    const data: Record<string, unknown> = (await prometheus.ask('/metadata')).data ?? {};
    expect(data.device_errors_total ?? data.device_errors).toMatchObject([{ type: 'counter' }]);
    expect(data.device_agent_probe_run_duration_seconds).toMatchObject([{ type: 'histogram' }]);
    let units: readonly Sample[] = [];
    const ask = async () => {
      units = await prometheus.query('count by (__name__, __unit__) ({__name__=~"(device|container|process|nodejs)_.+"})');
      return units.length;
    };
    await expect.poll(ask).toBeGreaterThan(60);
    const inherited = units.filter(({ metric: m }) => m.__unit__ !== undefined && !m.__name__?.includes(`_${m.__unit__}`));
    expect(inherited).toEqual([]);
    if (isNewer) expect(units.filter(({ metric }) => metric.__unit__ !== undefined).length).toBeGreaterThan(20);
  });
});

const [, { program: newest, isThere: hasNewest, skipped }] = PROMETHEUSES;

/** How many of six requests are admitted. Asks until the server listens. */
async function admitted(url: string): Promise<number> {
  let [answers, count] = [0, 0];
  while (answers < 6) {
    const status = await fetch(url).then(
      (answer) => answer.status,
      () => setTimeout(50),
    );
    if (status === undefined) continue;
    answers += 1;
    if (status !== 429) count += 1;
  }
  return count;
}

it.skipIf(!hasNewest).each([
  ['interval: 1h, burst: 3', 3],
  ['interval: 3600000000000, burst: 1', 1],
  ['interval: 1h', 0],
  ['interval: 1h, burst: -1', 0],
  ['burst: 1', 6],
  ['interval: -1s, burst: 1', 6],
])(`rate_limit: {%s} admits %i of six requests, as in Prometheus 3${skipped}`, async (limit, expected) => {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-limit-'));
  undo.push(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'web.yml');
  writeFileSync(file, `rate_limit: {${limit}}\n`);
  const prometheus = await startPrometheus({}, {}, newest, `--web.config.file=${file}`);
  undo.push(() => prometheus.stop());
  expect(await admitted(`${prometheus.url}/-/healthy`)).toBe(expected);
  const { access = OPEN_ACCESS, problem } = await new WebConfigFile(file, systemClock).read();
  expect(problem).toBeUndefined();
  const { url, server } = await start({ parts: { access: { current: access, subscribe: () => undefined } } });
  undo.push(() => server.close());
  expect(await admitted(`${url}/metrics`)).toBe(expected);
});
