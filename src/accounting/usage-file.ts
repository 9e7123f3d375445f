import { rename } from 'node:fs/promises';
import { decodeSaved, encodeSaved, readSavedText, type SavedFormat, type SavedIgnored, writeSavedText } from '../host/fs/saved-state.ts';
import type { AccountsState } from './accounts-state.ts';

/** The accounts on the disk, with both clocks of their last step. */
export interface SavedUsage {
  /** Wall clock. */
  readonly savedAtMs: number;
  /** CLOCK_MONOTONIC, which begins at the boot of the machine. */
  readonly sinceBootMs: number;
  readonly accounts: AccountsState;
}

export type UsageRead =
  | { readonly saved: SavedUsage; readonly bootId: string; readonly ignored?: undefined }
  | { readonly saved?: undefined; readonly ignored: SavedIgnored; readonly message: string };

const FORMAT: SavedFormat = { format: 'device-agent-usage', version: 2, name: 'usage state' };
const MAX_BYTES = 16 * 1024 * 1024;

export interface UsageFile {
  readonly path: string;
  /** A file that cannot be used is renamed, so that no write destroys it. */
  read(): Promise<UsageRead>;
  /** Replaces the file. On failure the old file stays, and the error message is returned. */
  write(saved: SavedUsage): Promise<string | undefined>;
}

/** File of the accounts. After a kill at any moment it has the previous or the next state, never a part. */
export function createUsageFile(path: string, bootId: string, maxBytes = MAX_BYTES): UsageFile {
  return {
    path,
    async read() {
      const read = await readSavedText(path, maxBytes);
      const result = read.text === undefined ? read : decodeUsage(read.text);
      if (result.ignored !== undefined && result.ignored !== 'absent') await rename(path, unusedPath(path)).catch(() => undefined);
      return result;
    },
    async write(saved) {
      const text = encodeSaved(FORMAT, bootId, JSON.stringify(saved));
      if (Buffer.byteLength(text) > maxBytes) return `the state is larger than ${maxBytes} bytes`;
      return await writeSavedText(path, text);
    },
  };
}

/** Name that a file gets which this agent cannot use. */
export const unusedPath = (path: string): string => `${path}.unused`;

export function decodeUsage(text: string): UsageRead {
  const read = decodeSaved(FORMAT, text);
  if (read.ignored !== undefined) return read;
  if (!isSavedUsage(read.body)) return { ignored: 'damaged', message: 'contains no usage state' };
  return { saved: read.body, bootId: read.bootId };
}

function isSavedUsage(value: unknown): value is SavedUsage {
  if (typeof value !== 'object' || value === null) return false;
  const { savedAtMs, sinceBootMs, accounts } = value as Partial<SavedUsage>;
  const { devices, active, ended } = accounts ?? {};
  return Number.isFinite(savedAtMs) && Number.isFinite(sinceBootMs) && [devices, active, ended].every(Array.isArray);
}
