import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pythonPackage } from '../../support/python-package.ts';

const run = promisify(execFile);
const SOURCE = 'test/node/stock-plugins';

/** A command line, and what it needs of the environment. */
export interface StockClient {
  readonly words: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly missing?: undefined;
}
/** `missing`: why there is no client. */
export type MaybeClient = StockClient | { readonly missing: string };

/** Builds a program around the client package of a device plugin, unless it was built before. GOPROXY decides from where the package comes. */
export async function goClient(name: 'rocm' | 'intel'): Promise<MaybeClient> {
  const source = join(SOURCE, name);
  const hash = createHash('sha256');
  for (const file of readdirSync(source).sort()) hash.update(readFileSync(join(source, file)));
  const folder = process.env.TEST_CACHE ?? join(homedir(), '.cache/device-agent');
  const path = join(folder, `stock-${name}-${hash.digest('hex').slice(0, 12)}`);
  if (existsSync(path)) return { words: [path] };
  const directory = mkdtempSync(join(tmpdir(), 'stock-plugin-'));
  const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false -mod=mod' };
  const go = (...words: string[]): Promise<unknown> => run('go', words, { cwd: directory, env, maxBuffer: 64 << 20 });
  try {
    if ((await go('version').catch(() => undefined)) === undefined) return { missing: 'there is no Go' };
    cpSync(source, directory, { recursive: true });
    const failed = await go('mod', 'download').then(() => undefined, lastLine);
    if (failed !== undefined) return { missing: `its module cannot be had: ${failed}` };
    mkdirSync(folder, { recursive: true });
    const beside = `${path}.${process.pid}`;
    await go('build', '-trimpath', '-ldflags', '-s -w', '-o', beside, '.');
    renameSync(beside, path);
    return { words: [path] };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const lastLine = (error: unknown): string => (error as Error).message.trim().split('\n').at(-1) ?? '';

/** The check of the node of NVRx, as published, and the packages that it needs. Its wheel is for another Python, and the check is not compiled. */
export function pythonClient(): MaybeClient {
  const other = ['--python-version=3.12', '--platform=manylinux_2_39_x86_64'];
  const packages = [
    pythonPackage('nvidia-resiliency-ext', '0.7.0', other),
    pythonPackage('grpcio', '1.85.3'),
    pythonPackage('protobuf', '7.36.2'),
    pythonPackage('typing_extensions', '4.16.0'),
  ];
  const folders: string[] = [];
  for (const { folder, missing } of packages) {
    if (folder === undefined) return { missing };
    folders.push(folder);
  }
  const env = { PYTHONPATH: folders.join(':'), PYTHONDONTWRITEBYTECODE: '1' };
  return { words: ['python3', join(SOURCE, 'nvrx/told.py')], env };
}

/** A running client. Each line of its output is a JSON object. */
export class RunningClient {
  readonly #child: ChildProcess;
  #lines: string[] = [''];
  #errors = '';

  constructor({ words, env }: StockClient, more: readonly string[]) {
    const [program = '', ...rest] = [...words, ...more];
    this.#child = spawn(program, rest, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.stdout?.on('data', (chunk: Buffer) => {
      const lines = ((this.#lines.at(-1) ?? '') + chunk.toString()).split('\n');
      // The last complete line, and the beginning of the next one.
      this.#lines = [lines.at(-2) ?? this.#lines[0] ?? '', lines.at(-1) ?? ''];
    });
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-2_000);
    });
  }

  /** What it said last, or its errors before it said anything. */
  told(): unknown {
    const line = this.#lines.length > 1 ? this.#lines[0] : undefined;
    return line === undefined || line === '' ? this.#errors : JSON.parse(line);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}
