import { isDeepStrictEqual } from 'node:util';
import type { RunningAgent } from '../../agent/agent.ts';
import { Configuration, loadConfiguration } from '../../config/configuration.ts';
import { readFamilyDirectory } from '../../config/families/family-directory.ts';
import { CONFIG_LIMITS, digestOf } from '../../config/file-text.ts';
import { UserError } from '../../errors.ts';
import type { Clock } from '../../host/clock.ts';
import { UntrustedFile, type UntrustedRead } from '../../host/fs/untrusted-file.ts';
import { type ChangeLog, createChangeLog } from '../../log/changes.ts';
import type { ConfigStatus } from '../../model/agent-stats.ts';
import { defined } from '../../model/defined.ts';
import type { CommandContext } from '../context.ts';
import { agentSettings, checkMeaning, logSettings } from '../settings.ts';

/** Time between two reads of the file. A changed ConfigMap reaches the node up to a minute late anyway. */
const POLL_MS = 5_000;
/** Time between a read that returns another content and the read that confirms it. */
const CONFIRM_MS = 2_000;

interface Problem {
  readonly message: string;
  readonly remedy: string;
}

/** Reads the configuration file again, and gives the running agent its valid contents. */
export class ConfigReload {
  readonly #context: Omit<CommandContext, 'output' | 'options' | 'configuration'>;
  readonly #clock: Clock;
  readonly #changes: ChangeLog;
  readonly #path: string;
  readonly #file: UntrustedFile;
  #running: Configuration;
  #agent: Pick<RunningAgent, 'apply'> | undefined;
  #loadedAtMs: number;
  #problem: Problem | undefined;
  #waiting: readonly string[] = [];
  /** The content that was used or refused last, and the content of the last read. */
  #judged: string;
  #seen: string;
  /** One reload follows the other. */
  #turn: Promise<unknown> = Promise.resolve();
  #cancelPoll = (): void => {};
  #isStopped = false;

  /** The reload of the file of `context`; undefined when there is none. */
  static of(context: CommandContext, clock: Clock): ConfigReload | undefined {
    const { file } = context.configuration;
    return file && new ConfigReload(context, file, clock);
  }

  private constructor(context: CommandContext, file: NonNullable<Configuration['file']>, clock: Clock) {
    this.#context = context;
    this.#clock = clock;
    this.#changes = createChangeLog(context.logger);
    this.#path = file.path;
    this.#file = new UntrustedFile(file.path, CONFIG_LIMITS, clock);
    this.#running = context.configuration;
    this.#loadedAtMs = clock.now();
    this.#judged = file.digest;
    this.#seen = file.digest;
  }

  /** True while a read has not returned. Such a read can keep the process from exiting. */
  get isPending(): boolean {
    return this.#file.isPending;
  }

  /** The values in use. */
  get running(): Configuration {
    return this.#running;
  }

  status(): ConfigStatus {
    const digest = this.#running.file?.digest ?? '';
    return { file: this.#path, digest, loadedAtMs: this.#loadedAtMs, ...defined({ problem: this.#problem }), waiting: this.#waiting };
  }

  /** Watches the file from now on. */
  start(agent: Pick<RunningAgent, 'apply'>): void {
    this.#agent = agent;
    this.#wait();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelPoll();
  }

  /** Reads the file and uses it now. Resolves to what is wrong with it. */
  reload(): Promise<string | undefined> {
    return this.#next(async () => {
      await this.#use(await this.#file.read());
      return this.#problem && `${this.#problem.message} ${this.#problem.remedy}`;
    });
  }

  #wait(): void {
    if (this.#isStopped) return;
    const delayMs = this.#seen === this.#judged ? POLL_MS : CONFIRM_MS;
    this.#cancelPoll = this.#clock.after(delayMs, () => void this.#next(() => this.#look()).finally(() => this.#wait()));
  }

  /** Uses another content when two reads in a row return it: a file that is being written is empty or incomplete for a moment. */
  async #look(): Promise<void> {
    const read = await this.#file.read();
    const before = this.#seen;
    this.#seen = markOf(read);
    if (this.#seen === before && this.#seen !== this.#judged) await this.#use(read);
  }

  async #use(read: UntrustedRead): Promise<void> {
    if (this.#agent === undefined || this.#isStopped) return;
    const { registry, environment, flags, families, logger } = this.#context;
    this.#judged = markOf(read);
    try {
      const { configuration: next } = await loadConfiguration(registry, environment, flags, read);
      checkMeaning(next, families);
      const hasOtherFamilies = await this.#hasOtherFamilies();
      const { configuration, changed, waiting } = reloaded(this.#running, next);
      if (changed.length > 0) await this.#agent.apply(agentSettings(configuration, families));
      this.#running = configuration;
      this.#loadedAtMs = this.#clock.now();
      this.#waiting = hasOtherFamilies ? [...new Set([...waiting, 'family.dir'])] : waiting;
      this.#report(undefined);
      logger.adjust(logSettings(configuration));
      logger.info('configuration reloaded', { file: this.#path, changed: changed.length === 0 ? 'nothing' : changed });
      if (this.#waiting.length > 0) logger.warn('some changes take effect at the next start of the agent', { options: this.#waiting });
    } catch (error) {
      this.#report(error);
    }
  }

  /** Whether the declarations of families changed since the start. Throws when one of them is wrong: the next start would fail. */
  async #hasOtherFamilies(): Promise<boolean> {
    const { declared } = this.#context;
    return declared !== undefined && !isDeepStrictEqual((await readFamilyDirectory(declared.directory)).families, declared.families);
  }

  #report(error: unknown): void {
    this.#problem = error === undefined ? undefined : problemOf(error);
    const trouble = this.#problem && {
      key: this.#problem.message,
      message: 'the configuration file cannot be used; the last valid configuration stays in use',
      ended: 'the configuration file could not be used; this problem ended',
      fields: { file: this.#path },
      detail: this.#problem.message,
      remedy: this.#problem.remedy,
    };
    this.#changes.update('configuration', trouble === undefined ? [] : [trouble]);
  }

  #next<T>(run: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(run);
    this.#turn = done.catch(() => undefined);
    return done;
  }
}

const markOf = (read: UntrustedRead): string => (read.problem === undefined ? digestOf(read.text) : `${read.problem} ${read.reason}`);

/** Puts the problems of a file, one per line for a terminal, into one line. */
function problemOf(error: unknown): Problem {
  const message = error instanceof Error ? error.message : String(error);
  const remedy = error instanceof UserError ? error.remedy : 'Report it as a bug.';
  return { message: message.replace(/:\n\s*/g, ': ').replace(/\n\s*/g, '; '), remedy };
}

/** The changes that a new configuration makes in a running agent. */
export interface Reloaded {
  /** The values from now on: new ones where a running agent takes them, otherwise those of the start. */
  readonly configuration: Configuration;
  /** Keys whose values changed. */
  readonly changed: readonly string[];
  /** Keys whose new values take effect at the next start. */
  readonly waiting: readonly string[];
}

export function reloaded(running: Configuration, next: Configuration): Reloaded {
  const others = next.settings.filter(({ entry, value }) => !isDeepStrictEqual(value, running.setting(entry.key).value));
  const parts = next.structured.filter(({ part, value }) => !isDeepStrictEqual(value, running.part(part)));
  const settings = next.settings.map((setting) => (setting.entry.isLive ? setting : running.setting(setting.entry.key)));
  const keys = (isLive: boolean): string[] => others.filter(({ entry }) => entry.isLive === isLive).map(({ entry }) => entry.key);
  return {
    configuration: new Configuration(settings, next.structured, next.file),
    changed: [...keys(true), ...parts.map(({ part }) => part.path)],
    waiting: keys(false),
  };
}
