import { createHash } from 'node:crypto';
import { removeLeftovers, replaceFile } from './replace-file.ts';
import { type FileProblemCode, readUntrustedFile } from './untrusted-file.ts';

/** Why a saved state was not used. Closed set. */
export type SavedIgnored = 'absent' | 'unreadable' | 'too-large' | 'damaged' | 'other-version';

/** What a file is: the first line of the file says it. */
export interface SavedFormat {
  readonly format: string;
  readonly version: number;
  /** Oldest version that can still be read. Default: `version`. */
  readonly readableFrom?: number;
  /** For messages: `health state`. */
  readonly name: string;
}

export type SavedRead =
  | { readonly body: unknown; readonly bootId: string; readonly ignored?: undefined }
  | { readonly body?: undefined; readonly ignored: SavedIgnored; readonly message: string };

interface Header {
  readonly format: string;
  readonly version: number;
  readonly bootId: string;
  readonly sha256: string;
}

/** Encodes a state as two lines: a header with the checksum of the second line, and the state. `body`: JSON in one line. */
export function encodeSaved({ format, version }: SavedFormat, bootId: string, body: string): string {
  const header: Header = { format, version, bootId, sha256: checksum(body) };
  return `${JSON.stringify(header)}\n${body}\n`;
}

/** Decodes the text of {@link encodeSaved}. Any other text is ignored, with the reason. */
export function decodeSaved({ format, version, readableFrom = version, name }: SavedFormat, text: string): SavedRead {
  const [first = '', body = ''] = text.split('\n');
  const header = parse(first) as Partial<Header> | undefined;
  if (header?.format !== format) return ignored('damaged', `does not start with the header of a ${name}`);
  const isReadable = Number(header.version) >= readableFrom && Number(header.version) <= version;
  if (!isReadable) return ignored('other-version', `has version ${header.version}; this agent uses version ${version}`);
  if (header.sha256 !== checksum(body)) return ignored('damaged', 'does not match its checksum');
  return { body: parse(body), bootId: String(header.bootId) };
}

const checksum = (text: string): string => createHash('sha256').update(text).digest('hex');

function ignored(reason: SavedIgnored, message: string): SavedRead {
  return { ignored: reason, message };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reads the text of a saved state. Also removes the temporary files of interrupted writes. */
export async function readSavedText(
  path: string,
  maxBytes: number,
): Promise<{ readonly text: string } | { readonly text?: undefined; readonly ignored: SavedIgnored; readonly message: string }> {
  await removeLeftovers(path);
  const read = await readUntrustedFile(path, maxBytes);
  return read.problem === undefined ? { text: read.text } : { ignored: IGNORED[read.problem], message: read.reason };
}

const IGNORED: Readonly<Record<FileProblemCode, SavedIgnored>> = {
  absent: 'absent',
  'too-large': 'too-large',
  'not-a-file': 'unreadable',
  unreadable: 'unreadable',
  timeout: 'unreadable',
};

/** Replaces the file. On failure the old file stays, and the error message is returned. */
export async function writeSavedText(path: string, text: string): Promise<string | undefined> {
  try {
    await replaceFile(path, text);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
