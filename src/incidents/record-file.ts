import { type FileHandle, open } from 'node:fs/promises';
import { readUntrustedFile } from '../host/fs/untrusted-file.ts';
import { isIncidentId } from './incident-id.ts';
import { type IncidentRecord, type IncidentSummary, summaryOf } from './record.ts';

const FORMAT = 'device-agent-incident';
export const VERSION = 1;
const LARGEST_BYTES = 16 * 1024 * 1024;
/** A first line is far shorter. */
const HEAD_BYTES = 16_384;

interface Head {
  readonly format?: unknown;
  readonly version?: unknown;
  readonly summary?: unknown;
}

/** A file in the list of incidents. */
export interface ListedFile {
  readonly summary: IncidentSummary;
  /** Version of the format, when this agent cannot read it. */
  readonly newerVersion?: number;
  readonly bytes: number;
}

/** Writes one JSON document. Its first line has the summary, so that a list of all incidents does not read complete files. */
export function encodeRecord(record: IncidentRecord): string {
  const head = JSON.stringify({ format: FORMAT, version: VERSION, summary: summaryOf(record) });
  return `${head.slice(0, -1)},\n"record":${JSON.stringify(record)}}\n`;
}

/** Reads the summary of a file; undefined when it is no complete file of an incident. Rejects with the error of the system. */
export async function readSummary(path: string, id: string): Promise<ListedFile | undefined> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, 'r');
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > LARGEST_BYTES) return undefined;
    const head = await textAt(file, 0, HEAD_BYTES);
    const end = await textAt(file, Math.max(0, stats.size - 2), 2);
    if (end !== '}\n') return undefined;
    const line = head.slice(0, head.indexOf(',\n'));
    const document = parsed(`${line}}`) as Head | undefined;
    if (document?.format !== FORMAT || typeof document.version !== 'number') return undefined;
    const summary = isSummary(document.summary, id) ? document.summary : undefined;
    if (document.version > VERSION)
      return { summary: summary ?? { ...emptySummary, id }, newerVersion: document.version, bytes: stats.size };
    return summary === undefined ? undefined : { summary, bytes: stats.size };
  } finally {
    await file?.close();
  }
}

export type RecordRead = { readonly record: IncidentRecord; readonly problem?: undefined } | { readonly problem: string };

/** Reads a complete record. Never rejects. */
export async function readRecord(path: string, id: string): Promise<RecordRead> {
  const { text, message } = await readUntrustedFile(path, LARGEST_BYTES);
  if (text === undefined) return { problem: message };
  const document = parsed(text) as (Head & { readonly record?: unknown }) | undefined;
  if (document?.format !== FORMAT) return { problem: `${path}: it is no record of an incident` };
  if (document.version !== VERSION) return { problem: `${path}: version ${document.version} of the format is newer than this agent` };
  return isRecord(document.record, id) ? { record: document.record } : { problem: `${path}: the record is not complete` };
}

async function textAt(file: FileHandle, at: number, most: number): Promise<string> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(most), 0, most, at);
  return buffer.toString('utf8', 0, bytesRead);
}

const emptySummary = { time: '', device: '', states: [], conditions: [], holders: [] } as const;

function isSummary(value: unknown, id: string): value is IncidentSummary {
  const one = (value ?? {}) as Partial<IncidentSummary>;
  const areTexts = (list: unknown): boolean => Array.isArray(list) && list.every((text) => typeof text === 'string');
  return (
    one.id === id &&
    isIncidentId(id) &&
    typeof one.time === 'string' &&
    typeof one.device === 'string' &&
    ['string', 'undefined'].includes(typeof one.hardware) &&
    [one.states, one.conditions, one.holders].every(areTexts)
  );
}

/** Checks what every reader of a record relies on. A file on the node can be changed by hand. */
export function isRecord(value: unknown, id: string): value is IncidentRecord {
  const one = (value ?? {}) as Partial<IncidentRecord>;
  const lists = [one.changes, one.holders, one.processes, one.state, one.events, one.others, one.kernel?.lines, one.readings?.times];
  return (
    one.id === id &&
    typeof one.time === 'string' &&
    typeof one.device?.key === 'string' &&
    typeof one.before?.state === 'string' &&
    typeof one.after?.state === 'string' &&
    lists.every(Array.isArray) &&
    (one.readings?.series ?? []).every(({ values, metric }) => Array.isArray(values) && typeof metric === 'string')
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
