import { createHash } from 'node:crypto';
import { UserError } from '../../errors.ts';
import type { Clock } from '../../host/clock.ts';
import { UntrustedFile, type UntrustedFileLimits, type UntrustedRead } from '../../host/fs/untrusted-file.ts';
import { seconds } from '../../model/duration.ts';
import type { AccessReading, AccessSource } from '../../server/access/access.ts';
import type { FileProblem } from '../document.ts';
import type { Checked, ParsedWebConfig } from './web-config.ts';

const LIMITS: UntrustedFileLimits = { mostBytes: 1_048_576, timeoutMs: seconds(2) };

/** The web configuration file, and the files that it names. Loads the parser of YAML only when it reads. */
export class WebConfigFile implements AccessSource {
  readonly file: string;
  readonly #clock: Clock;
  /** One reader for each path, so that a file system that hangs blocks one thread at most for each of them. */
  readonly #readers = new Map<string, UntrustedFile>();
  #parsedText: string | undefined;
  #parsed: Checked<ParsedWebConfig> = { problems: [] };

  constructor(file: string, clock: Clock) {
    this.file = file;
    this.#clock = clock;
  }

  async read(): Promise<AccessReading> {
    const main = await this.#readerOf(this.file).read();
    if (main.problem !== undefined) {
      const problem = new UserError('web-config-unreadable', { file: this.file, problem: main.reason });
      return { fingerprint: digest(main.message), problem };
    }
    const parsed = await this.#parse(main.text);
    if (parsed.problems !== undefined) return { fingerprint: digest(main.text), problem: await this.#invalid(parsed.problems) };
    const paths = [...new Set(Object.values(parsed.value.paths))];
    this.#forget([this.file, ...paths]);
    const reads = new Map(await Promise.all(paths.map(async (path) => [path, await this.#readerOf(path).read()] as const)));
    const fingerprint = digest(main.text, ...[...reads].flatMap(([path, read]) => [path, read.text ?? read.message]));
    const { accessOf } = await import('./web-config.ts');
    const access = accessOf(parsed.value, reads);
    return access.problems === undefined
      ? { fingerprint, access: access.value }
      : { fingerprint, problem: await this.#invalid(access.problems) };
  }

  async #parse(text: string): Promise<Checked<ParsedWebConfig>> {
    const { parseWebConfig } = await import('./web-config.ts');
    const id = digest(text);
    if (id !== this.#parsedText) this.#parsed = await parseWebConfig(this.file, text);
    this.#parsedText = id;
    return this.#parsed;
  }

  async #invalid(problems: readonly FileProblem[]): Promise<UserError> {
    const { problemLines } = await import('../document.ts');
    return new UserError('web-config-invalid', { file: this.file, problems: problemLines(this.file, problems) });
  }

  #readerOf(path: string): UntrustedFile {
    const reader = this.#readers.get(path) ?? new UntrustedFile(path, LIMITS, this.#clock);
    this.#readers.set(path, reader);
    return reader;
  }

  #forget(inUse: readonly string[]): void {
    for (const [path, { isPending }] of this.#readers) if (!isPending && !inUse.includes(path)) this.#readers.delete(path);
  }
}

function digest(...contents: readonly UntrustedRead['text'][]): string {
  return createHash('sha256').update(JSON.stringify(contents)).digest('hex');
}
