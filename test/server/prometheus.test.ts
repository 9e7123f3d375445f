import { afterEach, describe, expect, it } from 'vitest';
import { isInstalled } from '../support/installed.ts';
import { plainScrape, startPrometheus } from '../support/prometheus.ts';
import { start } from './start.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const installed = isInstalled('prometheus');

describe('a real Prometheus', () => {
  it.skipIf(!installed)(
    `takes the OpenMetrics page in as it is meant${installed ? '' : ' (skipped: prometheus is not installed)'}`,
    async () => {
      const { url, server } = await start();
      undo.push(() => server.close());
      const prometheus = await startPrometheus(plainScrape(new URL(url).host));
      undo.push(() => prometheus.stop());
      await expect.poll(() => prometheus.targets(), { timeout: 60_000, interval: 250 }).toEqual(['up']);
      const value = async (query: string) => (await prometheus.query(query))[0]?.value[1];
      expect(await value('device_temperature_celsius{device="toy-0"}')).toBe('41.5');
      expect(await value('device_errors_total{device="toy-0",kind="parity"}')).toBe('18446744073709552000');
      expect(await value('device_info{model="Toy \\"Deluxe\\" \\\\ 2\\nnd edition"}')).toBe('1');
      expect(await value('histogram_quantile(0.5, device_agent_probe_run_duration_seconds_bucket{family="toy"})')).toBe('0.015');
      expect(await value('device_agent_probe_run_duration_seconds_count{family="toy"}')).toBe('3');
      const data: Record<string, unknown> = (await prometheus.ask('/metadata')).data ?? {};
      expect(data.device_errors_total ?? data.device_errors).toMatchObject([{ type: 'counter' }]);
      expect(data.device_agent_probe_run_duration_seconds).toMatchObject([{ type: 'histogram' }]);
    },
    90_000,
  );
});
