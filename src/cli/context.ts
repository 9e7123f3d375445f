import type { Configuration, Flags } from '../config/configuration.ts';
import type { Environment } from '../config/environment.ts';
import type { FamilyDirectory, ReadFamilies } from '../config/families/family-directory.ts';
import type { Registry } from '../config/registry.ts';
import type { AdjustableLogger } from '../log/logger.ts';
import type { DeviceFamily } from '../probes/family.ts';
import type { Output } from './output.ts';

/** Input of every command. */
export interface CommandContext {
  readonly configuration: Configuration;
  readonly registry: Registry;
  /** Environment and flags are the sources of the configuration. */
  readonly environment: Environment;
  readonly flags: Flags;
  readonly families: readonly DeviceFamily[];
  /** The directory of declarations and what was read there when the command began. */
  readonly declared?: ReadFamilies & { readonly directory: FamilyDirectory };
  readonly logger: AdjustableLogger;
  readonly output: Output;
  /** Options of the command itself, such as `output` for `-o`. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** Result of a command. */
export interface Ending {
  /** 0 ok, 1 findings or failure, 2 wrong usage or configuration. */
  readonly status: number;
  /** True when a thread is blocked in the kernel, so that the process cannot exit normally. */
  readonly isStuck?: boolean;
}

export type RunCommand = (context: CommandContext) => Promise<Ending>;
