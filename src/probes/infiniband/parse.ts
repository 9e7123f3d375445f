import { ALL_ONES, plainValue } from '../kit/count.ts';

/** Exact value of a counter; `bigint` from 2^53 on. */
export type Count = number | bigint;

/** Reason why the text of a counter file is not a value. */
export type NoCount = 'not-available' | 'empty' | 'not-decimal' | 'too-large' | 'all-ones';

const SAFE_DIGITS = 15;

/**
 * Parses the text of one counter file. Only decimal numbers without leading zeros are valid. Kernels before about 4.19 print
 * `N/A (no PMA)` when a port has no performance management.
 */
export function parseCount(text: string): Count | NoCount {
  const trimmed = text.trim();
  if (trimmed === '') return 'empty';
  if (trimmed.startsWith('N/A')) return 'not-available';
  if (!/^(?:0|[1-9]\d*)$/.test(trimmed)) return 'not-decimal';
  if (trimmed.length <= SAFE_DIGITS) return Number(trimmed);
  if (trimmed.length > 20) return 'too-large';
  const value = BigInt(trimmed);
  if (value === ALL_ONES) return 'all-ones';
  return value > ALL_ONES ? 'too-large' : plainValue(value);
}

/** Multiplies `count` by an integer without loss of digits. */
export function scaleCount(count: Count, scale: number): Count {
  if (scale === 1) return count;
  if (typeof count === 'number' && count <= Number.MAX_SAFE_INTEGER / scale) return count * scale;
  return plainValue(BigInt(count) * BigInt(scale));
}

/** Parses `<n>: <TEXT>` of a port's `state` file and returns the label value; undefined for other text. */
export function parsePortState(text: string): PortState | undefined {
  return numbered(text, PORT_STATES);
}

/** Parses `<n>: <Text>` of a port's `phys_state` file; undefined when number and text contradict each other. */
export function parsePhysicalState(text: string): PhysicalState | undefined {
  return numbered(text, PHYSICAL_STATES);
}

/** Source: `enum ib_port_state` and `state_show` in drivers/infiniband/core/sysfs.c. */
const PORT_STATES = {
  '0: nop': 'nop',
  '1: down': 'down',
  '2: init': 'init',
  '3: armed': 'armed',
  '4: active': 'active',
  '5: active_defer': 'active_defer',
} as const;

/** Source: `phys_state_to_str` in drivers/infiniband/core/sysfs.c. */
const PHYSICAL_STATES = {
  '1: sleep': 'sleep',
  '2: polling': 'polling',
  '3: disabled': 'disabled',
  '4: portconfigurationtraining': 'training',
  '5: linkup': 'link_up',
  '6: linkerrorrecovery': 'link_error_recovery',
  '7: phy test': 'phy_test',
} as const;

export type PortState = (typeof PORT_STATES)[keyof typeof PORT_STATES];
export type PhysicalState = (typeof PHYSICAL_STATES)[keyof typeof PHYSICAL_STATES];

function numbered<T extends string>(text: string, states: Readonly<Record<string, T>>): T | undefined {
  const key = text.trim().toLowerCase();
  return Object.hasOwn(states, key) ? states[key] : undefined;
}

/** Signalling rate of a port. */
export interface Rate {
  /** Gigabits per second over all lanes. */
  readonly gigabits: number;
  readonly lanes?: number;
  /** `SDR` … `XDR`; absent when an older kernel does not print it. */
  readonly speed?: string;
}

/** Parses a port's `rate` file, for example `400 Gb/sec (4X NDR)`. Drivers print zero for "no rate", which gives undefined. */
export function parseRate(text: string): Rate | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*G[bB]\/sec(?:\s*\((\d{1,2})X(?:\s*(\w+))?\))?$/.exec(text.trim());
  if (match === null) return undefined;
  const [, gigabits, lanes, speed] = match;
  if (Number(gigabits) === 0) return undefined;
  return { gigabits: Number(gigabits), ...(lanes && { lanes: Number(lanes) }), ...(speed && { speed }) };
}

/** Parses a `lid` or `sm_lid` file, for example `0x2a`; undefined for other text. */
export function parseLid(text: string): number | undefined {
  return /^0x[0-9a-f]{1,8}$/i.test(text.trim()) ? Number(text.trim()) : undefined;
}

/** Parses a GUID such as `a088:c203:00aa:b000`; undefined for a GUID of zeros (an unconfigured VF) and for other text. */
export function parseGuid(text: string): string | undefined {
  const guid = text.trim().toLowerCase();
  return /^[0-9a-f]{4}(?::[0-9a-f]{4}){3}$/.test(guid) && guid !== '0000:0000:0000:0000' ? guid : undefined;
}

/** Returns the text after the number in `node_type`: `CA`, `RNIC`, …; undefined for other text. */
export function parseNodeType(text: string): string | undefined {
  return /^\d+: (.{1,64})$/.exec(text.trim())?.[1];
}
