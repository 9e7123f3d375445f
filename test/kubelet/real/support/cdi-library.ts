import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { promisify } from 'node:util';

const run = promisify(execFile);
const SOURCE = 'test/kubelet/cdi-library';
const ENVIRONMENT = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false' };

/** The program around the library, built unless the same sources were built before. `missing`: why there is none. */
export async function buildCdiLibrary(): Promise<{ readonly path: string } | { readonly missing: string }> {
  const go = (...words: string[]): Promise<unknown> => run('go', words, { cwd: SOURCE, env: ENVIRONMENT, maxBuffer: 64 << 20 });
  if ((await go('version').catch(() => undefined)) === undefined) return { missing: 'there is no Go' };
  const unresolved = await go('list', '-deps', '.').then(
    () => undefined,
    (error: unknown) => (error as Error).message.trim().split('\n').at(-1) ?? '',
  );
  if (unresolved !== undefined) return { missing: `its modules cannot be had: ${unresolved}` };
  const hash = createHash('sha256');
  for (const name of readdirSync(SOURCE).sort()) hash.update(readFileSync(join(SOURCE, name)));
  const folder = process.env.TEST_CACHE ?? join(homedir(), '.cache/device-agent');
  const path = join(folder, `cdi-library-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(path)) return { path };
  mkdirSync(folder, { recursive: true });
  const beside = `${path}.${process.pid}`;
  await go('build', '-trimpath', '-ldflags', '-s -w', '-o', beside, '.');
  renameSync(beside, path);
  return { path };
}

/** What the library makes of directories. */
export interface LibraryAnswer {
  /** By path: why the file is no spec; empty for a spec. */
  readonly files: Readonly<Record<string, string>>;
  readonly devices: Readonly<Record<string, readonly InjectedNode[]>>;
  /** Devices that it knows, and that this machine does not have. */
  readonly refused: Readonly<Record<string, string>>;
}

export interface InjectedNode {
  readonly hostPath: string;
  readonly type: string;
  readonly major: number;
  readonly minor: number;
}

/** The running program: one answer for each question, in their order. */
export class CdiLibrary {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: Interface;
  readonly #answers: AsyncIterator<string>;

  constructor(path: string) {
    this.#child = spawn(path);
    this.#child.stderr.pipe(process.stderr);
    this.#lines = createInterface(this.#child.stdout);
    this.#answers = this.#lines[Symbol.asyncIterator]();
  }

  async read(directories: readonly string[]): Promise<LibraryAnswer> {
    this.#child.stdin.write(`${JSON.stringify(directories)}\n`);
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error('the program around the CDI library ended');
    return JSON.parse(value) as LibraryAnswer;
  }

  close(): void {
    this.#lines.close();
    this.#child.kill('SIGKILL');
  }
}
