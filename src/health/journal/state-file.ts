import { setAside } from '../../host/fs/kept-file.ts';
import { schemaProblem } from '../../host/fs/saved-schema.ts';
import {
  decodeSaved,
  encodeSaved,
  type SavedFormat,
  type SavedIgnored,
  type SavedRead,
  type SavedSections,
  SavedStateFile,
} from '../../host/fs/saved-state.ts';
import { readUntrustedFile } from '../../host/fs/untrusted-file.ts';
import { defined } from '../../model/defined.ts';
import type { SavedFault } from '../../model/fault.ts';
import type { HealthMemory } from '../engine/memory.ts';
import { unreturnedAtBoot } from '../engine/unreturned.ts';
import { MEMORY_SCHEMA } from './memory-schema.ts';

/** Why a state file was not used. Closed set. */
export type StateIgnored = SavedIgnored | 'other-boot';

export type StateRead =
  | { readonly state: HealthMemory; readonly unreturned?: undefined; readonly faultList?: undefined; readonly ignored?: undefined }
  | {
      readonly state?: undefined;
      readonly ignored: StateIgnored;
      readonly message: string;
      /** New path of a file that cannot be used. Absent when the file could not be renamed. */
      readonly kept?: string | undefined;
      /** What stays of a state from another boot. */
      readonly unreturned?: HealthMemory['unreturned'];
      readonly faultList?: HealthMemory['faultList'];
    };

const FORMAT: SavedFormat = { format: 'device-agent-health', version: 5, name: 'health state' };
const MAX_STATE_BYTES = 64 * 1024 * 1024;

/** The text of a file with that state. */
export const encodeState = (state: HealthMemory, bootId: string): Promise<string> => encodeSaved(FORMAT, bootId, sectionsOf(state));

/** Decodes the text of a state file. Any other text is ignored, with the reason. */
export const decodeState = (text: string, bootId: string): Promise<StateRead> => stateOf(decodeSaved(FORMAT, text), bootId);

/** The faults in a state file, whatever its boot; none when it cannot be read. */
export async function savedFaultsIn(path: string): Promise<readonly SavedFault[]> {
  const { text } = await readUntrustedFile(path, MAX_STATE_BYTES);
  return text === undefined ? [] : ((await decodeState(text, '')).faultList ?? []);
}

function sectionsOf({ devices, events, faultList = [], ...engine }: HealthMemory): SavedSections {
  const faults = Object.fromEntries(faultList.map((fault) => [fault.id, fault]));
  return {
    engine,
    devices,
    events: Object.fromEntries(events.map((event) => [event.id, event])),
    ...(faultList.length === 0 ? {} : { faults }),
  };
}

async function stateOf(saved: SavedRead, bootId: string): Promise<StateRead> {
  if (saved.ignored !== undefined) return saved;
  const state = fromSections(saved.body);
  const problem = await schemaProblem(MEMORY_SCHEMA, state);
  const memory = problem === undefined ? withFaults(state as HealthMemory) : undefined;
  if (saved.bootId !== bootId || bootId === '') {
    const other = ignored('other-boot', 'is from another boot of the machine');
    return memory === undefined ? other : { ...other, unreturned: unreturnedAtBoot(memory), ...faultListOf(memory) };
  }
  return memory === undefined ? ignored('damaged', `contains no health state: ${problem}`) : { state: memory };
}

/** The names of the events are integers, which an object has in their order. */
function fromSections({ engine, devices, events, faults }: Partial<SavedSections>): unknown {
  return { ...engine, devices, events: Object.values(events ?? {}), ...defined({ faultList: faults && Object.values(faults) }) };
}

/** The names of the faults have no order, and the list has that of their times. */
const withFaults = (state: HealthMemory): HealthMemory =>
  state.faultList === undefined ? state : { ...state, faultList: state.faultList.toSorted((a, b) => a.lastMs - b.lastMs) };

const faultListOf = ({ faultList }: HealthMemory): Pick<HealthMemory, 'faultList'> => defined({ faultList });

function withoutRates(state: HealthMemory): HealthMemory {
  return { ...state, devices: Object.fromEntries(Object.entries(state.devices).map(([key, device]) => [key, { ...device, rates: {} }])) };
}

function ignored(reason: StateIgnored, message: string): Extract<StateRead, { readonly message: string }> {
  return { ignored: reason, message };
}

/** Content that a later agent or a person can still use. */
const SET_ASIDE: ReadonlySet<StateIgnored> = new Set(['other-version', 'damaged', 'too-large']);

export interface StateFile {
  /** Also removes the temporary files of interrupted writes. A file that cannot be used is renamed, so that no write destroys it. */
  read(): Promise<StateRead>;
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
      const read = await stateOf(await file.read(), bootId);
      return read.ignored !== undefined && SET_ASIDE.has(read.ignored) ? { ...read, kept: await setAside(path) } : read;
    },
    async write(state) {
      const smaller = (): SavedSections[] => [withoutRates(state), { ...withoutRates(state), events: [] }].map(sectionsOf);
      return await file.write(sectionsOf(state), smaller);
    },
  };
}
