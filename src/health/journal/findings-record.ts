import type { Device } from '../../model/device.ts';
import type { EventHolder, HealthEvent } from '../../model/events.ts';
import type { Finding } from '../../model/health.ts';
import type { DeviceMemory } from '../engine/memory.ts';

/** Name of the journal's files, and version of its records. */
export const FINDINGS = { name: 'findings', version: 1 } as const;

/**
 * One judgement, as numbers: milliseconds since the judgement before, and then pairs of an age and a set of clocks. The clocks of the set
 * (bit 0 is the first clock) were renewed by readings of that age, in milliseconds.
 */
export type Tick = readonly number[];

/** What changed in the findings of one source. */
export interface SourceChange {
  /** Findings that are new, or that differ in more than a count, keyed by `findingKeys`. The message is empty unless the status is true. */
  readonly found?: Readonly<Record<string, Finding>>;
  /** New counts of known findings. */
  readonly counts?: Readonly<Record<string, number>>;
  /** Keys of the findings that are gone. */
  readonly lost?: readonly string[];
  /** Wall clock of a reading that other devices of the family have left behind; null: the reading is the latest of the family again. */
  readonly at?: number | null;
}

/** The part of a device that rules and identity need. */
export type RecordedIdentity = Pick<Device, 'family' | 'id' | 'identity' | 'kind' | 'aliases' | 'uuid' | 'pciAddress' | 'parent' | 'model'>;

/** What changed in the input of one device. Null stands for a value that is gone. */
export interface DeviceChange {
  readonly device?: RecordedIdentity;
  /** Wall clock. */
  readonly missing?: number | null;
  readonly unread?: boolean;
  /** Wall clock. */
  readonly awaited?: number | null;
  readonly holders?: readonly EventHolder[];
  /** Keyed by the name of the source: `read`, `outOfBand`. Null: the source says nothing any more. */
  readonly sources?: Readonly<Record<string, SourceChange | null>>;
  /** What the engine remembered after this judgement. Only in a picture. */
  readonly memory?: Omit<DeviceMemory, 'device'>;
}

/** The part of an event that a replay must find again. */
export type RecordedEvent = Pick<HealthEvent, 'device' | 'transition' | 'condition' | 'instance' | 'from' | 'to'>;

/** One line of the journal. It is about the judgement at `at` and about the judgements since the record before. */
export interface FindingsRecord {
  /** Names one run of the agent. */
  readonly run: string;
  /** Grows by one with each record of the run, so that a lost record is noticed. */
  readonly seq: number;
  /** Wall clock of the last judgement of `ticks`. */
  readonly at: number;
  /** Only in the first record of a run. True: the run began without the memory of an earlier one, as after a reboot. */
  readonly fresh?: boolean;
  /** Milliseconds by which the wall clock was set before the first judgement of `ticks`. */
  readonly step?: number;
  readonly ticks: readonly Tick[];
  /** Names of the clocks, when there are new ones. Each family has one for each of its sources. */
  readonly clocks?: readonly string[];
  /** `devices` is one of several parts of a full picture, from which a reader can begin. */
  readonly picture?: { readonly part: number; readonly of: number };
  /** Keyed by device key. Null: the device is no longer listed. */
  readonly devices?: Readonly<Record<string, DeviceChange | null>>;
  readonly events?: readonly RecordedEvent[];
  /** Digest of the policy, when it is another one. */
  readonly policy?: string;
  /** The run ended in order. */
  readonly end?: true;
}
