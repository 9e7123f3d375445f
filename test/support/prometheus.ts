import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

interface ActiveTarget {
  readonly health: string;
  readonly labels: { readonly job: string };
}

export interface RunningPrometheus {
  readonly url: string;
  /** Parsed answer of its HTTP API, `{}` while it does not answer. */
  ask(path: string): Promise<{ readonly data?: never; readonly error?: string }>;
  /** Fails with the words of Prometheus when the expression is wrong. */
  query(expression: string): Promise<readonly Sample[]>;
  /** Health of all targets: `up`, `down` or `unknown`. */
  targets(): Promise<readonly string[]>;
  /** Health of the target of one job. */
  targetHealth(job: string): Promise<string>;
  stop(): Promise<void>;
}

/** A real Prometheus with this configuration and these rule files, by name. */
export async function startPrometheus(
  config: object,
  files: Readonly<Record<string, string>> = {},
  program = 'prometheus',
  ...flags: readonly string[]
): Promise<RunningPrometheus> {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-prometheus-'));
  writeFileSync(join(directory, 'prometheus.yml'), JSON.stringify(config));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  const port = await freePort();
  const options = [
    `--config.file=${directory}/prometheus.yml`,
    ...(flags.some((flag) => flag.startsWith('--storage.tsdb.path=')) ? [] : [`--storage.tsdb.path=${directory}/data`]),
    `--web.listen-address=127.0.0.1:${port}`,
    ...flags,
  ];
  const child: ChildProcess = spawn(program, options, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  const ask = async (path: string) => {
    const answer = await fetch(`${url}/api/v1${path}`).catch(() => undefined);
    return JSON.parse((await answer?.text()) || '{}');
  };
  const active = async (): Promise<readonly ActiveTarget[]> => (await ask('/targets')).data?.activeTargets ?? [];
  return {
    url,
    ask,
    async query(expression) {
      const { data, error } = await ask(`/query?query=${encodeURIComponent(expression)}`);
      if (error !== undefined) throw new Error(`${error}: ${expression}`);
      return data?.result ?? [];
    },
    targets: async () => (await active()).map(({ health }) => health),
    targetHealth: async (job) => (await active()).find(({ labels }) => labels.job === job)?.health ?? 'unknown',
    async stop() {
      child.kill('SIGKILL');
      await ended;
      rmSync(directory, { recursive: true });
    },
  };
}

/** The configuration of jobs that scrape one target each five seconds: of one, or of several by name with settings of their own. */
export const plainScrape = (target: string, jobs: Readonly<Record<string, object>> = { agent: {} }): object => ({
  scrape_configs: Object.entries(jobs).map(([name, settings]) => ({
    job_name: name,
    // An answer may take as long: on a busy machine one second is too short.
    scrape_interval: '5s',
    honor_labels: true,
    static_configs: [{ targets: [target] }],
    ...settings,
  })),
});

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
