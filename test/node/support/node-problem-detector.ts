import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { seriesValue } from '../../support/serve.ts';

const run = promisify(execFile);
const SOURCE = 'test/node/node-problem-detector';
const MODULE = 'k8s.io/node-problem-detector';
/** The parts that need the headers of systemd, or that nothing here uses. */
const TAGS = 'disable_system_log_monitor,disable_system_stats_monitor,disable_stackdriver_exporter';

export type BuiltDetector = { readonly path: string } | { readonly missing: string };

/** Builds the released node-problem-detector, unless it was built before. `missing` says why there is none. */
export async function buildDetector(): Promise<BuiltDetector> {
  const [, version] = /node-problem-detector (v\S+)/.exec(readFileSync(join(SOURCE, 'go.mod'), 'utf8')) ?? [];
  const folder = process.env.TEST_CACHE ?? join(homedir(), '.cache/device-agent');
  const path = join(folder, `node-problem-detector-${version}`);
  if (existsSync(path)) return { path };
  const directory = mkdtempSync(join(tmpdir(), 'node-problem-detector-'));
  const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false -mod=mod' };
  const go = (...words: string[]): Promise<unknown> => run('go', words, { cwd: directory, env, maxBuffer: 64 << 20 });
  try {
    if ((await go('version').catch(() => undefined)) === undefined) return { missing: 'there is no Go' };
    cpSync(SOURCE, directory, { recursive: true });
    const failed = await go('mod', 'download', MODULE).then(() => undefined, lastLine);
    if (failed !== undefined) return { missing: `its module cannot be had: ${failed}` };
    mkdirSync(folder, { recursive: true });
    const beside = `${path}.${process.pid}`;
    process.stderr.write('building node-problem-detector: minutes the first time\n');
    await go('build', '-trimpath', '-tags', TAGS, '-ldflags', '-s -w', '-o', beside, `${MODULE}/cmd/nodeproblemdetector`);
    renameSync(beside, path);
    return { path };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const lastLine = (error: unknown): string => (error as Error).message.trim().split('\n').at(-1) ?? '';

/** A node-problem-detector without a cluster. Its metrics and its log say what it would write. */
export class Detector {
  readonly #child: ChildProcess;
  readonly #url: string;
  #log = '';

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.#url = `http://127.0.0.1:${port}/metrics`;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.#log += chunk.toString();
      });
    }
  }

  /** `configs`: a file of each custom plugin monitor. */
  static async start(program: string, configs: readonly string[]): Promise<Detector> {
    const port = await freePort();
    const words = [
      '--enable-k8s-exporter=false',
      `--config.custom-plugin-monitor=${configs.join()}`,
      '--hostname-override=node-1',
      '--port=0',
    ];
    const metrics = ['--prometheus-address=127.0.0.1', `--prometheus-port=${port}`];
    return new Detector(spawn(program, [...words, ...metrics], { stdio: ['ignore', 'pipe', 'pipe'] }), port);
  }

  log(): string {
    return this.#log;
  }

  /** Value of a series of its exporter; undefined before it answers. */
  async value(name: string, labels: Readonly<Record<string, string>>): Promise<number | undefined> {
    const page = await fetch(this.#url).then(
      (answer) => answer.text(),
      () => '',
    );
    return seriesValue(page, name, labels);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
