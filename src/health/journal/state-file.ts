import { setAside } from '../../host/fs/kept-file.ts';
import {
  decodeSaved,
  encodeSaved,
  type SavedFormat,
  type SavedIgnored,
  type SavedRead,
  type SavedSections,
  SavedStateFile,
} from '../../host/fs/saved-state.ts';
import { deviceKey } from '../../model/device.ts';
import type { HealthMemory } from '../engine/memory.ts';
import { pastOf } from '../engine/past-devices.ts';

/** Why a state file was not used. Closed set. */
export type StateIgnored = SavedIgnored | 'other-boot';

export type StateRead =
  | { readonly state: HealthMemory; readonly past?: undefined; readonly ignored?: undefined }
  | {
      readonly state?: undefined;
      readonly ignored: StateIgnored;
      readonly message: string;
      /** New path of a file of a newer version. Absent when the file could not be renamed. */
      readonly kept?: string | undefined;
      /** What stays of a state from another boot. */
      readonly past?: HealthMemory['past'];
    };

/** Versions 1 and 2 have one JSON value. In version 1, what it remembers of a device passes to the hardware that is first seen under the name. */
const FORMAT: SavedFormat = { format: 'device-agent-health', version: 3, readableFrom: 1, name: 'health state' };
const MAX_STATE_BYTES = 16 * 1024 * 1024;

/** The text of a file with that state. */
export const encodeState = (state: HealthMemory, bootId: string): Promise<string> => encodeSaved(FORMAT, bootId, sectionsOf(state));

/** Decodes the text of a state file. Any other text is ignored, with the reason. */
export const decodeState = (text: string, bootId: string): StateRead => stateOf(decodeSaved(FORMAT, text), bootId);

function sectionsOf({ devices, events, ...engine }: HealthMemory): SavedSections {
  return { engine, devices, events: Object.fromEntries(events.map((event) => [event.id, event])) };
}

function stateOf(saved: SavedRead, bootId: string): StateRead {
  if (saved.ignored !== undefined) return saved;
  const state = saved.hasSections ? fromSections(saved.body) : saved.body;
  if (saved.bootId !== bootId || bootId === '') {
    const other = ignored('other-boot', 'is from another boot of the machine');
    return isMemory(state) ? { ...other, past: pastOf(state) } : other;
  }
  return isMemory(state) ? { state } : ignored('damaged', 'contains no health state');
}

/** The names of the events are integers, which an object has in their order. */
function fromSections(body: unknown): unknown {
  const { engine, devices, events } = body as Partial<SavedSections>;
  return { ...engine, devices, events: Object.values(events ?? {}) };
}

function withoutRates(state: HealthMemory): HealthMemory {
  return { ...state, devices: Object.fromEntries(Object.entries(state.devices).map(([key, device]) => [key, { ...device, rates: {} }])) };
}

function ignored(reason: StateIgnored, message: string): Extract<StateRead, { readonly message: string }> {
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

/** A state that an agent kept and does not use. */
export interface KeptState {
  readonly path: string;
  /** Devices that were unhealthy when it was written, as keys. None of a state from another boot. */
  readonly unhealthy: readonly string[];
}

export interface StateFile {
  /** Also removes the temporary files of interrupted writes. A file of a newer version is renamed, so that no write destroys it. */
  read(): Promise<StateRead>;
  /** Files that an older agent kept and that this one could use. */
  kept(): Promise<readonly KeptState[]>;
  /**
   * Writes what changed. If the file would be too large, it omits the counters' history first and then the events, because the conditions
   * must be kept. On failure the file has the old state, and the error message is returned.
   */
  write(state: HealthMemory): Promise<string | undefined>;
}

/** State file of the health engine. After a kill at any moment the file has the previous or the next state, never a part. */
export function createStateFile(options: { readonly path: string; readonly bootId: string; readonly maxBytes?: number }): StateFile {
  const { path, bootId, maxBytes = MAX_STATE_BYTES } = options;
  const file = new SavedStateFile(path, FORMAT, bootId, maxBytes);
  return {
    async read() {
      const read = stateOf(await file.read(), bootId);
      return read.ignored === 'other-version' ? { ...read, kept: await setAside(path) } : read;
    },
    async kept() {
      const reads = await file.kept();
      return reads.map(({ path: kept, saved }) => {
        const devices = Object.values(stateOf(saved, bootId).state?.devices ?? {});
        return {
          path: kept,
          unhealthy: devices.filter(({ verdict }) => verdict.state === 'unhealthy').map(({ device }) => deviceKey(device)),
        };
      });
    },
    async write(state) {
      const smaller = (): SavedSections[] => [withoutRates(state), { ...withoutRates(state), events: [] }].map(sectionsOf);
      return await file.write(sectionsOf(state), smaller);
    },
  };
}
