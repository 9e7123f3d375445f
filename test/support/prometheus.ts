import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Whether a program can be started. */
export function isInstalled(program: string, question = '--version'): boolean {
  try {
    execFileSync(program, [question], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export interface RunningPrometheus {
  /** Parsed answer of its HTTP API, `{}` while it does not answer. */
  ask(path: string): Promise<{ readonly data?: never }>;
  query(
    expression: string,
  ): Promise<readonly { readonly metric: Readonly<Record<string, string>>; readonly value: readonly [number, string] }[]>;
  /** `up`, `down` or `unknown`. */
  targetHealth(): Promise<string>;
  stop(): Promise<void>;
}

/** A real Prometheus that scrapes one target each second. */
export async function startPrometheus(target: string): Promise<RunningPrometheus> {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-prometheus-'));
  const config = {
    scrape_configs: [{ job_name: 'agent', scrape_interval: '1s', honor_labels: true, static_configs: [{ targets: [target] }] }],
  };
  writeFileSync(join(directory, 'prometheus.yml'), JSON.stringify(config));
  const port = await freePort();
  const options = [
    `--config.file=${directory}/prometheus.yml`,
    `--storage.tsdb.path=${directory}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const child: ChildProcess = spawn('prometheus', options, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  const api = `http://127.0.0.1:${port}/api/v1`;
  const ask = async (path: string) => {
    const answer = await fetch(api + path).catch(() => undefined);
    return JSON.parse((await answer?.text()) ?? '{}');
  };
  return {
    ask,
    query: async (expression) => (await ask(`/query?query=${encodeURIComponent(expression)}`)).data.result,
    targetHealth: async () => (await ask('/targets')).data?.activeTargets[0]?.health ?? 'unknown',
    async stop() {
      child.kill('SIGKILL');
      await ended;
      rmSync(directory, { recursive: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
