import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { start } from './start.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const installed = ((): boolean => {
  try {
    execFileSync('prometheus', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** A real Prometheus that scrapes one target each second; gives the address of its API. */
async function startPrometheus(target: string): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-prometheus-'));
  const config = { scrape_configs: [{ job_name: 'agent', scrape_interval: '1s', static_configs: [{ targets: [target] }] }] };
  writeFileSync(join(directory, 'prometheus.yml'), JSON.stringify(config));
  const port = await freePort();
  const options = [
    `--config.file=${directory}/prometheus.yml`,
    `--storage.tsdb.path=${directory}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const child: ChildProcess = spawn('prometheus', options, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  undo.push(async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(directory, { recursive: true });
  });
  return `http://127.0.0.1:${port}/api/v1`;
}

describe('a real Prometheus', () => {
  it.skipIf(!installed)(
    `takes the OpenMetrics page in as it is meant${installed ? '' : ' (skipped: prometheus is not installed)'}`,
    async () => {
      const { url, server } = await start();
      undo.push(() => server.close());
      const api = await startPrometheus(new URL(url).host);
      const ask = async (path: string) =>
        JSON.parse(
          await fetch(api + path).then(
            (answer) => answer.text(),
            () => '{}',
          ),
        );
      await expect
        .poll(async () => (await ask('/targets')).data?.activeTargets[0]?.health ?? 'unknown', { timeout: 60_000, interval: 250 })
        .toBe('up');
      const value = async (query: string) => (await ask(`/query?query=${encodeURIComponent(query)}`)).data.result[0]?.value[1];
      expect(await value('device_temperature_celsius{device="toy-0"}')).toBe('41.5');
      expect(await value('device_errors_total{device="toy-0",kind="parity"}')).toBe('18446744073709552000');
      expect(await value('device_info{model="Toy \\"Deluxe\\" \\\\ 2\\nnd edition"}')).toBe('1');
      const { data } = await ask('/metadata');
      expect(data.device_errors_total ?? data.device_errors).toMatchObject([{ type: 'counter' }]);
    },
    90_000,
  );
});
