import { decodeSaved, encodeSaved, readSavedText, type SavedFormat, type SavedIgnored, writeSavedText } from '../../host/fs/saved-state.ts';
import type { HealthMemory } from '../engine/memory.ts';

/** Why a state file was not used. Closed set. */
export type StateIgnored = SavedIgnored | 'other-boot';

export type StateRead =
  | { readonly state: HealthMemory; readonly ignored?: undefined }
  | { readonly state?: undefined; readonly ignored: StateIgnored; readonly message: string };

/** Version 1 has the devices by name and without their identity. What it remembers passes to the hardware that is first seen under the name. */
const FORMAT: SavedFormat = { format: 'device-agent-health', version: 2, readableFrom: 1, name: 'health state' };
const MAX_STATE_BYTES = 16 * 1024 * 1024;

/**
 * Encodes the state as two lines: a header with the checksum of the second line, and the state. If the text is too large, it omits the
 * counters' history first and then the events, because the conditions must be kept. Undefined when even that does not fit.
 */
export function encodeState(state: HealthMemory, bootId: string, maxBytes = MAX_STATE_BYTES): string | undefined {
  for (const candidate of [() => state, () => withoutRates(state), () => ({ ...withoutRates(state), events: [] })]) {
    const text = encode(candidate(), bootId);
    if (Buffer.byteLength(text) <= maxBytes) return text;
  }
  return undefined;
}

function withoutRates(state: HealthMemory): HealthMemory {
  return { ...state, devices: Object.fromEntries(Object.entries(state.devices).map(([key, device]) => [key, { ...device, rates: {} }])) };
}

const encode = (state: HealthMemory, bootId: string): string => encodeSaved(FORMAT, bootId, JSON.stringify(state));

/** Decodes the text of {@link encodeState}. Any other text is ignored, with the reason. */
export function decodeState(text: string, bootId: string): StateRead {
  const saved = decodeSaved(FORMAT, text);
  if (saved.ignored !== undefined) return saved;
  if (saved.bootId !== bootId || bootId === '') return ignored('other-boot', 'is from another boot of the machine');
  return isMemory(saved.body) ? { state: saved.body } : ignored('damaged', 'contains no health state');
}

function ignored(reason: StateIgnored, message: string): StateRead {
  return { ignored: reason, message };
}

function isMemory(value: unknown): value is HealthMemory {
  if (typeof value !== 'object' || value === null) return false;
  const { judgedAtMs, devices, lastEventId, events } = value as Partial<HealthMemory>;
  return (
    Number.isFinite(judgedAtMs) &&
    Number.isSafeInteger(lastEventId) &&
    Array.isArray(events) &&
    typeof devices === 'object' &&
    devices !== null
  );
}

export interface StateFile {
  /** Also removes the temporary files of interrupted writes. */
  read(): Promise<StateRead>;
  /** Replaces the whole file. On failure the old file stays, and the error message is returned. */
  write(state: HealthMemory): Promise<string | undefined>;
}

/** State file of the health engine. After a kill at any moment the file has the previous or the next state, never a part. */
export function createStateFile(options: { readonly path: string; readonly bootId: string; readonly maxBytes?: number }): StateFile {
  const { path, bootId, maxBytes = MAX_STATE_BYTES } = options;
  return {
    async read() {
      const read = await readSavedText(path, maxBytes);
      return read.text === undefined ? read : decodeState(read.text, bootId);
    },
    async write(state) {
      const text = encodeState(state, bootId, maxBytes);
      return text === undefined ? `the state is larger than ${maxBytes} bytes` : await writeSavedText(path, text);
    },
  };
}
