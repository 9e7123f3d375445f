import type { OptionSection } from '../config/registry.ts';
import type { RunCommand } from './context.ts';

/** One command of the command line. Its code is loaded only when it runs. */
export interface CommandSpec {
  /** Words after `device-agent`. */
  readonly name: string;
  readonly summary: string;
  /** Allowed values of `-o`; the first one is the default. */
  readonly formats?: readonly string[];
  /** Without `-o`, a terminal gets `text`. */
  readonly isTextOnTerminal?: true;
  /** A word that may follow the command. It is in the options under its name. */
  readonly argument?: ArgumentSpec;
  readonly secondArgument?: ArgumentSpec;
  /** Options of this command only. They have no environment variable and no key in the file. */
  readonly options?: readonly OwnOption[];
  /** Further notes for the help text. */
  readonly notes?: string;
  /** An option section of this command only. It is loaded when the command line names the command. */
  readonly ownSection?: { readonly path: string; load(): Promise<OptionSection> };
  /** Its node has a configuration file of its own, so that a file of the environment is of another node, or of a demo that ended. */
  readonly hasOwnFile?: true;
  /** It asks the running demo of this user where no agent is configured or runs. */
  readonly knowsDemo?: true;
  /** Whether it reads the devices once by itself. It then waits for others that do, beside a running agent. */
  readsDevices?(options: Readonly<Record<string, unknown>>): boolean;
  readonly examples: readonly string[];
  load(): Promise<RunCommand>;
}

export interface OwnOption {
  readonly flags: string;
  readonly help: string;
  /** Allowed values. */
  readonly choices?: readonly string[];
}

export interface ArgumentSpec {
  readonly name: string;
  readonly help: string;
  readonly isRequired?: true;
}
