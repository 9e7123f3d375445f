import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { prometheusAt } from '../../fleet/prometheus.ts';
import { sentenceOf } from '../../fleet/sentence.ts';
import { fleetServer } from '../../fleet/server.ts';
import { FleetWatch, readFleet } from '../../fleet/watch.ts';
import { systemClock } from '../../host/clock.ts';
import { listen } from '../../server/http/listen.ts';
import { openMetricsOf, type SimulatedSeries, simulatedFleet } from '../../sim/fleet.ts';
import type { CommandContext, Ending } from '../context.ts';
import { stopSignal } from '../signals.ts';
import { readVersion } from '../version.ts';

const HOURS = 3_600;
const ADDRESS = '127.0.0.1:9836';
const ANY_PORT = '127.0.0.1:0';

interface Source {
  readonly url: URL;
  readonly what: string;
  stop(): Promise<void>;
}

/** Shows a fleet of simulated nodes, from a real Prometheus where one is installed, until a signal arrives. */
export async function runDemoFleet({ output, logger }: CommandContext): Promise<Ending> {
  const ended = stopSignal();
  const begin = Math.floor(systemClock.now() / 1_000);
  const series = simulatedFleet(begin);
  const source = (await storedIn(series, begin)) ?? (await answering(series));
  const prometheus = prometheusAt({ url: source.url });
  const watch = new FleetWatch(prometheus, {}, { clock: systemClock, logger });
  const server = fleetServer({ prometheus, watch, version: readVersion().version, clock: systemClock, logger });
  try {
    await watch.start();
    // Another page of a fleet can have the port.
    const address = await listen(server, ADDRESS).catch(() => listen(server, ANY_PORT));
    const fleet = watch.fleet ?? (await readFleet(prometheus));
    await output.write(`20 simulated nodes, ${source.what}.

  Page       ${address}
  Terminal   device-agent fleet list --prometheus=${source.url.href}

${sentenceOf(fleet)}.

A lost GPU of gpu-11 comes and goes, each for ten minutes. Ctrl-C ends the demo and removes all its files.
`);
    await ended;
    return { status: 0 };
  } finally {
    watch.stop();
    server.close();
    server.closeAllConnections();
    await source.stop();
  }
}

/** A Prometheus of this machine with the series of some hours before and after now; undefined where none is installed. */
async function storedIn(series: readonly SimulatedSeries[], begin: number): Promise<Source | undefined> {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-fleet-'));
  let child: ChildProcess | undefined;
  const stop = async (): Promise<void> => {
    if (child !== undefined && child.exitCode === null) {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    const [metrics, data, config] = ['fleet.om', 'data', 'prometheus.yml'].map((name) => join(directory, name)) as [string, string, string];
    const minute = begin - (begin % 60);
    writeFileSync(metrics, openMetricsOf(series, minute - 6 * HOURS, minute + 3 * HOURS));
    writeFileSync(config, '{}');
    await promisify(execFile)('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', metrics, data]);
    const port = await freePort();
    child = spawn('prometheus', [`--config.file=${config}`, `--storage.tsdb.path=${data}`, `--web.listen-address=127.0.0.1:${port}`], {
      stdio: 'ignore',
    });
    await once(child, 'spawn');
    const url = new URL(`http://127.0.0.1:${port}/`);
    while (child.exitCode === null) {
      const isReady = await prometheusAt({ url })
        .query('time()')
        .then(
          () => true,
          () => false,
        );
      if (isReady) return { url, what: 'in a real Prometheus of this machine', stop };
      await pause(100);
    }
  } catch {
    // It is not installed. The answers of this process show the same.
  }
  await stop();
  return undefined;
}

async function freePort(): Promise<string> {
  const server = createServer();
  const { port } = new URL(await listen(server, ANY_PORT));
  server.close();
  await once(server, 'close');
  return port;
}

/** Answers instant queries of one series by itself. It knows no functions and no curves. */
export async function answering(series: readonly SimulatedSeries[]): Promise<Source> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const asked = new URLSearchParams(Buffer.concat(parts).toString());
      const [now, query] = [systemClock.now() / 1_000, asked.get('query') ?? ''];
      const answer = (resultType: string, result: unknown): void =>
        void response.end(JSON.stringify({ status: 'success', data: { resultType, result } }));
      if (query === 'time()') return answer('scalar', [now, String(now)]);
      if (request.url?.endsWith('query_range') === true) return answer('matrix', []);
      const at = Number(asked.get('time') ?? now);
      answer('vector', matching(series, query, at));
    });
  });
  const url = new URL(await listen(server, ANY_PORT));
  return {
    url,
    what: 'from a small set of answers, because no Prometheus is installed here: without curves',
    async stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function matching(series: readonly SimulatedSeries[], query: string, at: number): readonly object[] {
  const name = /[a-z]\w*:[\w:]+|container_device_allocation|kube_node_labels/.exec(query)?.[0];
  const node = /node="([^"]+)"/.exec(query)?.[1];
  const wasThere = (one: SimulatedSeries): number | undefined =>
    one.valueAt(at) ?? (query.startsWith('last_over_time') ? one.valueAt(at - 2 * HOURS) : undefined);
  return series.flatMap((one) => {
    const value = one.name === name && (node === undefined || one.labels.node === node) ? wasThere(one) : undefined;
    return value === undefined ? [] : [{ metric: one.labels, value: [at, String(value)] }];
  });
}
