import { setAside } from '../host/fs/kept-file.ts';
import { schemaProblem } from '../host/fs/saved-schema.ts';
import { type SavedFormat, type SavedIgnored, type SavedRead, SavedStateFile } from '../host/fs/saved-state.ts';
import type { AccountsState } from './accounts-state.ts';
import { USAGE_SCHEMA } from './usage-schema.ts';

/** The accounts on the disk, with both clocks of their last step. */
export interface SavedUsage {
  /** Wall clock. */
  readonly savedAtMs: number;
  /** CLOCK_MONOTONIC, which begins at the boot of the machine. */
  readonly sinceBootMs: number;
  readonly accounts: AccountsState;
  /** What the waiting detector knows about each container. A file of an earlier agent does not have it. */
  readonly waiting?: Readonly<Record<string, object>>;
}

export type UsageRead =
  | { readonly saved: SavedUsage; readonly bootId: string; readonly ignored?: undefined }
  | { readonly saved?: undefined; readonly ignored: SavedIgnored; readonly message: string; readonly kept?: string | undefined };

/** Version 2 has all accounts in one JSON value, as lists. */
const FORMAT: SavedFormat = { format: 'device-agent-usage', version: 3, readableFrom: 2, name: 'usage state' };
const MAX_BYTES = 16 * 1024 * 1024;

export interface UsageFile {
  readonly path: string;
  /** A file that cannot be used is renamed, so that no write destroys it. */
  read(): Promise<UsageRead>;
  /** Paths of files that an older agent kept and that this one could use. */
  kept(): Promise<readonly string[]>;
  /** Writes what changed. `isLast`: the file gets the complete state. On failure the file has the old state, and the error message is returned. */
  write(saved: SavedUsage, isLast?: boolean): Promise<string | undefined>;
}

/** File of the accounts. After a kill at any moment it has the previous or the next state, never a part. */
export function createUsageFile(path: string, bootId: string, maxBytes = MAX_BYTES): UsageFile {
  const file = new SavedStateFile(path, FORMAT, bootId, maxBytes);
  return {
    path,
    async read() {
      const result = usageOf(await file.read());
      return result.ignored === undefined || result.ignored === 'absent' ? result : { ...result, kept: await setAside(path) };
    },
    kept: async () => (await file.kept()).filter(({ saved }) => usageOf(saved).ignored === undefined).map((one) => one.path),
    write: ({ accounts, waiting = {}, ...times }, isLast) => file.write({ times, waiting, ...accounts }, undefined, isLast),
  };
}

function usageOf(read: SavedRead): UsageRead {
  if (read.ignored !== undefined) return read;
  const saved = read.hasSections ? fromSections(read.body) : read.body;
  const problem = schemaProblem(USAGE_SCHEMA, saved);
  if (problem !== undefined) return { ignored: 'damaged', message: `contains no usage state: ${problem}` };
  return { saved: saved as SavedUsage, bootId: read.bootId };
}

function fromSections(body: unknown): unknown {
  const { times, waiting, ...accounts } = body as { readonly times?: object; readonly waiting?: object };
  return { ...times, accounts, ...(waiting && { waiting }) };
}
