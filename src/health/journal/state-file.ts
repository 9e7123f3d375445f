import { createHash } from 'node:crypto';
import { type FileProblemCode, readOutsideFile } from '../../host/fs/outside-file.ts';
import { removeLeftovers, replaceFile } from '../../host/fs/replace-file.ts';
import type { HealthMemory } from '../engine/memory.ts';

/** Why a state file was not used. Closed set. */
export type StateIgnored = 'absent' | 'unreadable' | 'too-large' | 'damaged' | 'other-version' | 'other-boot';

export type StateRead =
  | { readonly state: HealthMemory; readonly ignored?: undefined }
  | { readonly state?: undefined; readonly ignored: StateIgnored; readonly message: string };

const FORMAT = 'device-agent-health';
const VERSION = 1;
const MAX_STATE_BYTES = 16 * 1024 * 1024;

interface Header {
  readonly format: string;
  readonly version: number;
  readonly bootId: string;
  readonly sha256: string;
}

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

function encode(state: HealthMemory, bootId: string): string {
  const body = JSON.stringify(state);
  const header: Header = { format: FORMAT, version: VERSION, bootId, sha256: checksum(body) };
  return `${JSON.stringify(header)}\n${body}\n`;
}

const checksum = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Decodes the text of {@link encodeState}. Any other text is ignored, with the reason. */
export function decodeState(text: string, bootId: string): StateRead {
  const [first = '', body = ''] = text.split('\n');
  const header = parse(first) as Partial<Header> | undefined;
  if (header?.format !== FORMAT) return ignored('damaged', 'does not start with the header of a health state');
  if (header.version !== VERSION) return ignored('other-version', `has version ${header.version}; this agent uses version ${VERSION}`);
  if (header.bootId !== bootId || bootId === '') return ignored('other-boot', 'is from another boot of the machine');
  if (header.sha256 !== checksum(body)) return ignored('damaged', 'does not match its checksum');
  const state = parse(body);
  return isMemory(state) ? { state } : ignored('damaged', 'contains no health state');
}

function ignored(reason: StateIgnored, message: string): StateRead {
  return { ignored: reason, message };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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

const IGNORED: Readonly<Record<FileProblemCode, StateIgnored>> = {
  absent: 'absent',
  'too-large': 'too-large',
  'not-a-file': 'unreadable',
  unreadable: 'unreadable',
  timeout: 'unreadable',
};

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
      await removeLeftovers(path);
      const read = await readOutsideFile(path, maxBytes);
      return read.problem === undefined ? decodeState(read.text, bootId) : ignored(IGNORED[read.problem], read.reason);
    },
    async write(state) {
      const text = encodeState(state, bootId, maxBytes);
      if (text === undefined) return `the state is larger than ${maxBytes} bytes`;
      try {
        await replaceFile(path, text);
        return undefined;
      } catch (error) {
        return error instanceof Error ? error.message : String(error);
      }
    },
  };
}
