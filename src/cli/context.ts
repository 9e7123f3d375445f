import type { Configuration, Flags } from '../config/configuration.ts';
import type { Environment } from '../config/environment.ts';
import type { Registry } from '../config/registry.ts';
import type { Logger } from '../log/logger.ts';
import type { DeviceFamily } from '../probes/family.ts';
import type { Output } from './output.ts';

/** What every command gets. */
export interface CommandContext {
  readonly configuration: Configuration;
  readonly registry: Registry;
  /** What the configuration was made from. */
  readonly environment: Environment;
  readonly flags: Flags;
  readonly families: readonly DeviceFamily[];
  readonly logger: Logger;
  readonly output: Output;
  /** Options of the command itself, such as `output` for `-o`. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** How a command ended. */
export interface Ending {
  /** 0 ok, 1 findings or failure, 2 wrong usage or configuration. */
  readonly status: number;
  /** True when a thread is stuck in the kernel, so that the process cannot end by itself. */
  readonly isStuck?: boolean;
}

export type RunCommand = (context: CommandContext) => Promise<Ending>;
