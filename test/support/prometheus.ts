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
  /** `up`, `down` or `unknown`; of the only job, or of one by name. */
  targetHealth(job?: string): Promise<string>;
  stop(): Promise<void>;
}

interface Target {
  readonly health: string;
  readonly labels: { readonly job: string };
}

/** A real Prometheus that scrapes one target each second, by one job or by several with settings of their own. */
export async function startPrometheus(target: string, jobs: Readonly<Record<string, object>> = { agent: {} }): Promise<RunningPrometheus> {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-prometheus-'));
  const config = {
    scrape_configs: Object.entries(jobs).map(([name, settings]) => ({
      job_name: name,
      scrape_interval: '1s',
      honor_labels: true,
      static_configs: [{ targets: [target] }],
      ...settings,
    })),
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
    async targetHealth(job) {
      const targets: readonly Target[] = (await ask('/targets')).data?.activeTargets ?? [];
      return targets.find(({ labels }) => job === undefined || labels.job === job)?.health ?? 'unknown';
    },
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
