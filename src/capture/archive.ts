import { gunzipSync, gzipSync } from 'node:zlib';
import { Ajv } from 'ajv';
import { parseJson } from '../host/documents/json.ts';
import type { Bounds } from '../host/documents/kind.ts';
import { entries, list, type SavedSchema, shape } from '../host/fs/saved-schema.ts';
import { type Capture, FORMAT, isTreePath } from './format.ts';

/** Limits of an archive that somebody else made: bytes without compression; paths, outputs and answers; levels. */
export const ARCHIVE_BOUNDS: Bounds = { mostBytes: 128 * 2 ** 20, mostEntries: 2_000_000, mostDepth: 16 };

/** The fault of an archive. An error message for the user ends with its text: `it is cut off`. */
export class ArchiveProblem extends Error {}

/** A capture as compressed JSON. Throws {@link ArchiveProblem} when no replay would read it. */
export function packCapture(capture: Capture): Buffer {
  const text = Buffer.from(`${JSON.stringify(capture, null, 1)}\n`);
  if (text.length > ARCHIVE_BOUNDS.mostBytes) throw tooLarge();
  return gzipSync(text);
}

/** Reads an archive. Throws {@link ArchiveProblem} for everything that is no capture of this format. */
export function unpackCapture(archive: Buffer): Capture {
  const text = uncompressed(archive);
  // Archives of format 1 were tar archives with many moments of a node.
  if (text.toString('latin1', 257, 262) === 'ustar') throw otherFormat(1);
  const capture = parsed(text.toString('utf8'));
  if (!isObject(capture) || typeof capture.format !== 'number') throw new ArchiveProblem('it is no capture of device-agent');
  if (capture.format !== FORMAT) throw otherFormat(capture.format);
  if (!isCapture(capture)) throw new ArchiveProblem(`it is damaged: ${ajv.errorsText(isCapture.errors, { dataVar: 'capture' })}`);
  for (const { tree } of capture.reads)
    for (const path of Object.keys(tree))
      if (!isTreePath(path)) throw new ArchiveProblem(`the path ${JSON.stringify(path.slice(0, 200))} is not allowed`);
  return capture;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const tooLarge = (): ArchiveProblem => new ArchiveProblem(`it is larger than ${ARCHIVE_BOUNDS.mostBytes} bytes`);
const otherFormat = (format: number): ArchiveProblem =>
  new ArchiveProblem(`it has format ${format}, and this version of device-agent reads format ${FORMAT}; capture the node again`);

function uncompressed(archive: Buffer): Buffer {
  try {
    return gunzipSync(archive, { maxOutputLength: ARCHIVE_BOUNDS.mostBytes });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw new ArchiveProblem(code === 'Z_BUF_ERROR' ? 'it is cut off' : 'it is damaged, or no capture of device-agent');
  }
}

function parsed(text: string): unknown {
  try {
    return parseJson(text, ARCHIVE_BOUNDS);
  } catch {
    return undefined;
  }
}

const string = { type: 'string' } as const;
const number = { type: 'number' } as const;
const integer = { type: 'integer' } as const;
const errorName = { type: 'string', pattern: '^[A-Za-z-]{1,32}$' } as const;
const texts = entries(string, ARCHIVE_BOUNDS.mostEntries);
const all = (items: SavedSchema) => list(items, ARCHIVE_BOUNDS.mostEntries);
const entry = {
  type: 'object',
  properties: { file: string, base64: string, link: string, error: errorName, directory: { const: true } },
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
};
const signal = { type: 'string', pattern: '^SIG[A-Z0-9]{1,12}$' };
const exitCode = { type: 'integer', minimum: 0, maximum: 255 };
const output = { program: string, args: all(string), stdout: string, stderr: string };
const failed = shape({ code: { type: 'integer', minimum: 1, maximum: 16 }, details: string }, { errno: errorName });
const read = shape({
  atMs: { type: 'number', minimum: 0 },
  wallMs: { type: 'number', minimum: 0, maximum: 8.64e15 },
  tree: entries(entry, ARCHIVE_BOUNDS.mostEntries),
  kernelLog: all(string),
  commands: all(shape(output, { exitCode, signal, failure: string })),
  library: all(
    shape(
      { symbol: string, types: string, values: all(string), memory: all(shape({ at: number, before: string, after: string })) },
      { code: integer, event: integer },
    ),
  ),
  requests: all(shape({ method: string }, { answer: string, error: failed })),
});
const ajv = new Ajv({ strict: false });
const isCapture = ajv.compile<Capture>(
  shape({
    format: number,
    agentVersion: string,
    node: string,
    isRedacted: { type: 'boolean' },
    options: texts,
    parts: { type: 'object' },
    page: string,
    reads: { ...list(read, 2), minItems: 2 },
  }),
);
